from datetime import timedelta
from typing import Any

import pytest

from signoff.core.errors import InvalidAnswer, UsageError
from signoff.core.questions import Option, UserQuestion, check_answers, format_answer, questions_of
from signoff.core.remedies import PassOption
from signoff.core.requests import Questions, check_answer, describe_default, options_of

STORAGE = UserQuestion(
    "Storage",
    "Where are records kept?",
    (Option("SQLite", description="one file"), Option("Postgres")),
)
AUTH = UserQuestion("Auth", "Who may call it?", (Option("none"), Option("token"), Option("a, b")))
EXTRAS = UserQuestion("Extras", "What else?", (Option("logs"), Option("metrics")), True)
ALL = [STORAGE, AUTH, EXTRAS]


def test_a_request_stores_all_questions_without_what_is_empty() -> None:
    """The form identifies the request on replay, so a field that is added must not show."""
    form = Questions("Please decide.", [STORAGE, EXTRAS]).to_json()

    assert form == {
        "kind": "questions",
        "prompt": "Please decide.",
        "questions": [
            {
                "header": "Storage",
                "text": "Where are records kept?",
                "options": [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}],
            },
            {
                "header": "Extras",
                "text": "What else?",
                "options": [{"label": "logs"}, {"label": "metrics"}],
                "multi_select": True,
            },
        ],
    }
    assert questions_of(form) == [STORAGE, EXTRAS]


@pytest.mark.parametrize(
    "value",
    [
        {"Storage": "SQLite", "Auth": "token", "Extras": ["metrics", "logs"]},
        {"storage": "sqlite", " AUTH ": "2", "extras": "1,2"},
        ["Storage=SQLite", "Auth=token", "Extras=logs", "Extras=metrics"],
        "Storage=SQLite\n\nAuth: token\nExtras = logs, metrics\n",
        '{"Storage": "SQLite", "Auth": "token", "Extras": ["logs", "metrics"]}',
    ],
    ids=["labels", "other case and numbers", "words", "lines", "json"],
)
def test_every_question_is_answered_under_its_header(value: Any) -> None:
    """A command, a file and a terminal all give the same answer."""
    answers = check_answers(ALL, value)

    assert answers == {"Storage": "SQLite", "Auth": "token", "Extras": ["logs", "metrics"]}
    assert format_answer(answers) == "Storage=SQLite; Auth=token; Extras=logs, metrics"


@pytest.mark.parametrize("value", ["SQLite", "1", "sqlite", "Storage=SQLite", {"Storage": "1"}])
def test_one_question_is_answered_like_any_choice(value: Any) -> None:
    """There is nothing to tell apart, so the label is enough."""
    form = Questions("Please decide.", [STORAGE]).to_json()

    assert check_answer(form, value) == {"Storage": "SQLite"}
    assert [each["label"] for each in options_of(form)] == ["SQLite", "Postgres"]


def test_a_label_may_look_like_a_list_or_an_answer() -> None:
    """A label as it is comes first; only what is no label is taken apart."""
    odd = UserQuestion("Mode", "Which?", (Option("Mode=fast"), Option("fast"), Option("x,y")), True)

    assert check_answers([AUTH], "a, b") == {"Auth": "a, b"}
    assert check_answers([odd], "Mode=fast") == {"Mode": ["Mode=fast"]}
    assert check_answers([odd], {"Mode": ["x,y", "fast"]}) == {"Mode": ["fast", "x,y"]}


def test_a_header_with_a_separator_is_found() -> None:
    """The longest header that fits is meant."""
    longer = UserQuestion("Auth: API", "And there?", (Option("none"), Option("token")))

    answers = check_answers([AUTH, longer], "Auth=none\nAuth: API: token")

    assert answers == {"Auth": "none", "Auth: API": "token"}


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({"Storage": "Oracle", "Auth": "none", "Extras": "logs"},
         ["Storage: 'Oracle' is not an option; choose one of: SQLite, Postgres"]),
        ({"Storage": ["SQLite", "Postgres"], "Auth": "none", "Extras": "logs"},
         ["Storage: choose only one of: SQLite, Postgres"]),
        ({"Auth": "none", "Extras": []},
         ["Storage: not answered; choose one of: SQLite, Postgres",
          "Extras: not answered; choose one of: logs, metrics"]),
        ({"Store": "SQLite", "Auth": "none", "Extras": "logs"},
         ["unknown question 'Store'; the questions are: Storage, Auth, Extras",
          "Storage: not answered"]),
        ("Storage=SQLite\nAuth=none\nExtras=logs,traces", ["Extras: 'traces' is not an option"]),
        ("SQLite", ["unknown question 'SQLite'", "Auth: not answered"]),
        ("", ["Storage: not answered", "Auth: not answered", "Extras: not answered"]),
        ('{"Storage": ', ["the answer is not JSON"]),
        ("Storage=<SQLite|Postgres>\nAuth=none\nExtras=<logs|metrics,...>",
         ["Storage: '<SQLite|Postgres>' is not an option", "Extras: '<logs|metrics'"]),
        ({"Storage": {"a": 1}, "Auth": None, "Extras": 7}, ["Storage: ", "Auth: ", "Extras: "]),
    ],
)  # fmt: skip
def test_everything_that_is_wrong_is_reported_with_what_is_valid(
    value: Any, problems: list[str]
) -> None:
    """One round of corrections is enough, and nothing is recorded before."""
    with pytest.raises(InvalidAnswer) as refused:
        check_answers(ALL, value)

    for problem in problems:
        assert problem in str(refused.value)


def test_an_option_of_a_question_can_require_a_text() -> None:
    """As an option of a choice can."""
    other = UserQuestion("Size", "How big?", (Option("small"), Option("other", True)))

    assert check_answers([other], "other", "12 by 3") == {"Size": "other"}
    with pytest.raises(InvalidAnswer, match="needs an explanation") as refused:
        check_answers([other], "other")
    assert refused.value.remedies == (PassOption("text", "'...'"),)


def test_a_deadline_answers_all_questions() -> None:
    """The default has to be something that a human could have answered."""
    soon = timedelta(hours=1)
    form = Questions("?", [STORAGE], deadline=soon, default={"storage": "1"}).to_json()

    assert form["default"] == {"Storage": "SQLite"}
    assert describe_default(form) == "'Storage=SQLite' is taken"
    with pytest.raises(UsageError, match=r"Storage: .* choose one of: SQLite, Postgres"):
        Questions("?", [STORAGE], deadline=soon, default={"Storage": "Oracle"})


@pytest.mark.parametrize(
    "parts",
    [
        {"header": ""},
        {"header": "two\nlines"},
        {"header": " Storage"},
        {"header": "\x1b[2J"},
        {"text": " \n"},
        {"options": ()},
        {"options": (Option("a"), Option("A"))},
        {"options": (Option("a\nb"), Option("c"))},
        {"options": (Option(""), Option("c"))},
        {"options": (Option("a\u202eb"), Option("c"))},
    ],
)
def test_a_question_that_could_not_be_answered_is_refused(parts: dict[str, Any]) -> None:
    """Headers and labels are typed, so they are visible, on one line, and different."""
    valid = {"header": "Storage", "text": "Where?", "options": (Option("a"), Option("b"))}

    with pytest.raises(UsageError):
        UserQuestion(**{**valid, **parts})


@pytest.mark.parametrize("questions", [[], [STORAGE, STORAGE]], ids=["none", "one header twice"])
def test_a_request_needs_questions_with_different_headers(questions: list[UserQuestion]) -> None:
    """Otherwise an answer would not say which one was meant."""
    with pytest.raises(UsageError, match="questions with different headers"):
        Questions("?", questions)
