from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from signoff.core.errors import InvalidAnswer, UsageError
from signoff.core.questions import Option, UserQuestion
from signoff.core.requests import (
    Answer,
    AnswerForm,
    Approval,
    Choice,
    Question,
    Questions,
    Request,
    RequestKind,
    Response,
    check_answer,
    default_answer,
    describe_default,
    is_open_to_agents,
)
from tests.tables import table

SHIP = Choice("Ship?", ["Yes", Option("No", requires_input=True), "Maybe"])


def test_a_choice_stores_what_each_option_demands() -> None:
    """Surfaces show it, and the answer is checked against it."""
    assert SHIP.to_json() == {
        "kind": "choice",
        "prompt": "Ship?",
        "options": [
            {"label": "Yes", "requires_input": False, "description": ""},
            {"label": "No", "requires_input": True, "description": ""},
            {"label": "Maybe", "requires_input": False, "description": ""},
        ],
    }


@pytest.mark.parametrize("options", [[], ["yes", "yes"]], ids=["none", "twice"])
def test_a_choice_needs_options_with_different_labels(options: list[str]) -> None:
    """Otherwise an answer would not say which one was meant."""
    with pytest.raises(ValueError, match="each with its own label"):
        Choice("Ship?", options)


def test_an_approval_shows_what_is_approved() -> None:
    """The decision is bound to it."""
    form = Approval("Ship?", "the text", path="final/text.md").to_json()

    assert form == {
        "kind": "approval",
        "prompt": "Ship?",
        "shown": {"content": "the text"},
        "path": "final/text.md",
    }
    assert "path" not in Approval("Ship?", "the text").to_json()


def test_a_response_says_what_it_must_fit() -> None:
    """A human who replaces an agent gets the same information as the agent."""
    form = Response("Write it", {"type": "object"}).to_json()

    assert form == {"kind": "response", "prompt": "Write it", "schema": {"type": "object"}}
    assert "schema" not in Response("Write it").to_json()


@pytest.mark.parametrize(
    ("make", "default"), [(Question, "no"), (Approval, False), (Response, "no"), (Question, "")]
)
def test_every_request_can_have_a_deadline_and_a_name(
    make: Callable[..., Request], default: object
) -> None:
    """At the deadline the default is taken; by its name an answer can come from a file."""
    form = make("?", deadline=timedelta(hours=1), default=default, question_id="tone").to_json()

    assert form["deadline_seconds"] == 3600.0
    assert form["default"] == default
    assert form["question_id"] == "tone"
    assert "default" not in make("?", default=default).to_json()


CHOICE = partial(Choice, options=["a", "b"])
DEFAULTS: dict[Callable[..., Request], Any] = {
    Question: "calm",
    Response: "calm",
    Approval: True,
    CHOICE: "a",
}


@table("deadline", ["5", 6, datetime(2100, 1, 1, tzinfo=UTC), timedelta(0), timedelta(hours=-1)])
def test_a_deadline_is_a_stretch_of_time_that_leaves_time_to_answer(deadline: Any) -> None:
    """An approval without any time to answer approved itself, unseen."""
    for make, default in DEFAULTS.items():
        with pytest.raises(UsageError, match=r"a timedelta of more than 0, such as"):
            make("?", deadline=deadline, default=default)


@table("make", [*DEFAULTS])
def test_a_deadline_needs_an_answer_that_counts_when_it_has_passed(
    make: Callable[..., Request],
) -> None:
    """Without one the run continued with None as the answer, and completed."""
    with pytest.raises(UsageError, match="a deadline needs a default="):
        make("?", deadline=timedelta(hours=1))


@table(
    ("make", "default", "problem"),
    {
        "choice": (CHOICE, "c", "'c' is not an option.*: a, b"),
        "short choice": (partial(Question, options=["a", "b"]), "c", "'c' is not an option"),
        "approval": (Approval, "no", "approve or reject"),
        "question": (Question, 7, "default=7 cannot be taken: the answer must be a text"),
        "response": (Response, {}, "the answer must be a text"),
        "by schema": (partial(Response, schema={"type": "object"}), "none", "Expecting value"),
    },
)
def test_a_default_is_something_a_human_could_have_answered(
    make: Callable[..., Request], default: object, problem: str
) -> None:
    """The handler got an option it had never offered, days later."""
    with pytest.raises(UsageError, match=problem):
        make("?", deadline=timedelta(hours=1), default=default)


def test_a_default_response_is_read_like_a_given_one() -> None:
    """A handler that asked by schema works with the parsed value."""
    schema = {"type": "object"}

    form = Response("?", schema, deadline=timedelta(hours=1), default='{"n": 1}').to_json()

    assert default_answer(form)["parsed"] == {"n": 1}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Approval("?", deadline=timedelta(1), default=False), "it counts as rejected"),
        (Approval("?", deadline=timedelta(1), default=True), "it counts as approved"),
        (Question("?", deadline=timedelta(1), default="cats"), "'cats' is taken"),
    ],
)
def test_the_effect_of_a_deadline_is_described_for_each_kind_of_request(
    request_: Request, words: str
) -> None:
    """`False is taken` would mean nothing to an approver."""
    assert describe_default(request_.to_json()) == words


@pytest.mark.parametrize(
    ("value", "label"),
    [("Yes", "Yes"), ("yes", "Yes"), (" YES ", "Yes"), ("3", "Maybe"), (1, "Yes")],
)
def test_an_option_can_be_chosen_by_label_or_number(value: Any, label: str) -> None:
    """People type what is shortest."""
    assert check_answer(SHIP.to_json(), value) == label


def test_a_label_that_is_a_number_wins_over_the_number_of_an_option() -> None:
    """`2` must mean the option called 2, not the second one."""
    form = Choice("How many?", ["1", "3", "2"]).to_json()

    assert check_answer(form, "2") == "2"
    assert check_answer(form, "3") == "3"


def test_labels_that_differ_only_in_case_have_to_be_typed_exactly() -> None:
    """Guessing between `go` and `GO` would be a coin toss."""
    form = Choice("?", ["go", "GO"]).to_json()

    assert check_answer(form, "GO") == "GO"
    with pytest.raises(InvalidAnswer, match="choose one of: go, GO"):
        check_answer(form, "Go")


@pytest.mark.parametrize("value", ["", "0", "4", "-1", "yes no", "²", "9" * 10_000, None, True])
def test_what_is_no_option_is_refused_naming_the_options(value: Any) -> None:
    """This includes what looks like a number but is not the number of an option."""
    with pytest.raises(InvalidAnswer, match="choose one of: Yes, No, Maybe"):
        check_answer(SHIP.to_json(), value)


def test_an_option_that_needs_a_reason_is_refused_without_one() -> None:
    """The next step uses what the human wrote."""
    form = SHIP.to_json()

    with pytest.raises(InvalidAnswer, match="'No' needs an explanation"):
        check_answer(form, "2", " ")
    assert check_answer(form, "no", "too long") == "No"


@pytest.mark.parametrize("value", ["yes", 1, None, "True"])
def test_an_approval_takes_nothing_but_yes_or_no(value: Any) -> None:
    """A value that merely looks like a yes must not approve anything."""
    form = Approval("Ship?", "x").to_json()

    with pytest.raises(InvalidAnswer, match="approve or reject"):
        check_answer(form, value)
    assert check_answer(form, True) is True
    assert check_answer(form, False) is False


@pytest.mark.parametrize("value", ["", "  \n", None, 5, ["a"]])
@pytest.mark.parametrize("make", [Question, Response])
def test_an_empty_answer_is_no_answer(make: Callable[..., Request], value: Any) -> None:
    """An empty file or an early Enter must leave the request open."""
    with pytest.raises(InvalidAnswer, match="must not be empty"):
        check_answer(make("?").to_json(), value)


@pytest.mark.parametrize(
    ("value", "approved"), [(True, True), (False, False), ("yes", False), (1, False)]
)
def test_only_true_is_an_approval(value: Any, approved: bool) -> None:
    """`if answer.approved` must not pass for the label "no"."""
    assert Answer(value).approved is approved


def test_every_kind_of_request_has_a_form_of_answer() -> None:
    """Surfaces know a kind only by this form."""
    assert {kind: kind.answer_form for kind in RequestKind} == {
        "question": AnswerForm.TEXT,
        "approval": AnswerForm.DECISION,
        "choice": AnswerForm.PICK,
        "questions": AnswerForm.PICKS,
        "response": AnswerForm.WORK,
    }


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"edits": "accept"}, "needs path="),
        ({"edits": "yes", "path": "a.md"}, "'refuse' or 'accept', not 'yes'"),
        (
            {"edits": "accept", "path": "a.md", "deadline": timedelta(1), "default": True},
            "must be False",
        ),
    ],
)
def test_edits_that_cannot_work_are_refused(options: dict[str, Any], problem: str) -> None:
    """A deadline that approves would approve what no one has looked at."""
    with pytest.raises(UsageError, match=problem):
        Approval("Ship?", **options)


@pytest.mark.parametrize(
    "request_",
    [
        Question("Which tone?", answerable_by="agent"),
        Choice("Ship?", ["yes", "no"], answerable_by="agent"),
        Questions("Choose.", [UserQuestion("A", "?", (Option("x"),))], answerable_by="agent"),
    ],
    ids=lambda each: each.kind.value,
)
def test_questions_and_choices_can_be_opened_to_agents(request_: Request) -> None:
    """An agent that drives a run may know the answer; the workflow says where it may give it."""
    assert is_open_to_agents(request_.to_json())


def test_a_request_is_for_humans_unless_its_author_says_otherwise() -> None:
    """An agent must not answer what its author meant for a human."""
    form = Question("Which tone?").to_json()

    assert not is_open_to_agents(form)
    assert "answerable_by" not in form


@pytest.mark.parametrize(
    "build",
    [
        lambda: Approval("Ship?", "text", answerable_by="agent"),
        lambda: Response("Write.", answerable_by="agent"),
        lambda: Question("Which tone?", answerable_by="anyone"),
    ],
    ids=["approval", "work", "unknown"],
)
def test_approvals_and_work_are_never_opened_to_agents(build: Callable[[], Request]) -> None:
    """No setting of a workflow makes an agent an approver."""
    with pytest.raises(UsageError, match="answerable_by= must be 'human'"):
        build()


def test_a_stored_approval_is_never_open_to_agents() -> None:
    """Even a form that was written by something else does not let an agent approve."""
    form = {**Approval("Ship?", "text").to_json(), "answerable_by": "agent"}

    assert not is_open_to_agents(form)
