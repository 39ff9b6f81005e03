from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from signoff.core.requests import (
    Answer,
    Approval,
    Choice,
    Option,
    Question,
    Request,
    Response,
    check_answer,
)
from signoff.errors import InvalidAnswer

SHIP = Choice("Ship?", ["Yes", Option("No", requires_input=True), "Maybe"])


def test_a_question_asks_for_a_text() -> None:
    """Whatever is not empty is an answer."""
    form = Question("Which tone?").to_json()

    assert form == {"kind": "question", "prompt": "Which tone?", "options": []}
    assert check_answer(form, " calm ") == " calm "


def test_a_question_with_options_is_a_choice() -> None:
    """The person then picks one, and the handler gets exactly that label."""
    form = Question("Ship?", ["yes", "no"]).to_json()

    assert form["kind"] == "choice"
    assert check_answer(form, "yes") == "yes"


def test_a_choice_stores_what_each_option_demands() -> None:
    """Surfaces show it, and the answer is checked against it."""
    assert SHIP.to_json() == {
        "kind": "choice",
        "prompt": "Ship?",
        "options": [
            {"label": "Yes", "requires_input": False},
            {"label": "No", "requires_input": True},
            {"label": "Maybe", "requires_input": False},
        ],
    }


@pytest.mark.parametrize("options", [[], ["yes", "yes"]], ids=["none", "twice"])
def test_a_choice_needs_options_that_can_be_told_apart(options: list[str]) -> None:
    """Otherwise an answer would not say which one was meant."""
    with pytest.raises(ValueError, match="labels of their own"):
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
    """A person who stands in for an agent is told the same as the agent."""
    form = Response("Write it", {"type": "object"}).to_json()

    assert form == {"kind": "response", "prompt": "Write it", "schema": {"type": "object"}}
    assert "schema" not in Response("Write it").to_json()


@pytest.mark.parametrize("make", [Question, Approval, Response])
def test_every_request_can_have_a_deadline_and_a_name(make: Callable[..., Request]) -> None:
    """At the deadline the default is taken; by its name an answer can come from a file."""
    form = make("?", deadline=timedelta(hours=1), default="no", question_id="tone").to_json()

    assert form["deadline_seconds"] == 3600.0
    assert form["default"] == "no"
    assert form["question_id"] == "tone"
    assert "default" not in make("?", default="no").to_json()


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
    """Also what looks like a number and is none of ours."""
    with pytest.raises(InvalidAnswer, match="choose one of: Yes, No, Maybe"):
        check_answer(SHIP.to_json(), value)


def test_an_option_that_needs_a_reason_is_refused_without_one() -> None:
    """The next step works with what the person wrote."""
    form = SHIP.to_json()

    with pytest.raises(InvalidAnswer, match="'No' needs an explanation"):
        check_answer(form, "2", " ")
    assert check_answer(form, "no", "too long") == "No"


@pytest.mark.parametrize("value", ["yes", 1, None, "True"])
def test_an_approval_takes_nothing_but_yes_or_no(value: Any) -> None:
    """Anything that merely looks like a yes must not finalise anything."""
    form = Approval("Ship?", "x").to_json()

    with pytest.raises(InvalidAnswer, match="`approve` or `reject`"):
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
