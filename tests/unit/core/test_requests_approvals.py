"""Which requests are approvals, and which answers need a signature."""

from datetime import timedelta
from typing import Any

import pytest

from signoff.core.digest import digest
from signoff.core.errors import UsageError
from signoff.core.requests import (
    SIGN_OFF,
    Approval,
    Choice,
    Question,
    Request,
    Response,
    approves,
    needs_presence,
    request_word,
    require_presence,
)

OPTIONS = ["approve", "change", "reject"]
DAY = timedelta(days=1)


def test_the_requirement_is_part_of_what_is_shown() -> None:
    """An answer to the same words without the requirement must not count for it."""
    plain, strict = Approval("Ship?", "x"), Approval("Ship?", "x", presence=True)

    assert digest(plain.to_json()) != digest(strict.to_json())
    assert require_presence(plain.to_json()) == strict.to_json()


def test_the_settings_concern_approvals_only() -> None:
    """A question about a detail is no approval, wherever presence is required."""
    for request in (Question("Why?"), Choice("Which?", OPTIONS), Response("Write it.")):
        assert require_presence(request.to_json()) == request.to_json()


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        (Choice("Sign off?", OPTIONS, question_id=SIGN_OFF), "sign-off"),
        (Choice("Which?", OPTIONS), "decision"),
        (Response("Write it."), "manual work"),
        (Approval("Ship?", "x"), "approval"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_request_has_a_word_for_humans(request_: Request, word: str) -> None:
    """Logs, inbox, pages and MCP call it the same; the kinds are for programs."""
    assert request_word(request_.to_json()) == word


def test_an_approval_is_one_whether_or_not_it_had_to_be_signed() -> None:
    """A check of all approvals has to list those that no one signed, too."""
    choice = Choice("Go?", OPTIONS, approves=("approve",)).to_json()

    assert approves(Approval("Ship?", "x").to_json(), True)
    assert not approves(Approval("Ship?", "x").to_json(), False)
    assert [each for each in OPTIONS if approves(choice, each)] == ["approve"]
    assert not approves(Choice("Which?", OPTIONS).to_json(), "approve")


@pytest.mark.parametrize(
    ("request_", "needed"),
    [
        (Approval("Ship?", "x", presence=True), [True]),
        (Approval("Ship?", "x"), []),
        (Choice("Go?", OPTIONS, presence=True), OPTIONS),
        (Choice("Go?", OPTIONS, presence=True, approves=("approve",)), ["approve"]),
        (Choice("Go?", OPTIONS, approves=("approve",)), []),
    ],
    ids=["approval", "plain approval", "choice", "choice that rejects", "plain choice"],
)
def test_only_what_approves_needs_a_signature(request_: Request, needed: list[Any]) -> None:
    """Too many signatures would be given without a look, too few would be no proof."""
    values = [True, False] if not request_.options else OPTIONS

    assert [each for each in values if needs_presence(request_.to_json(), each)] == needed


@pytest.mark.parametrize("ask", [Question, Response])
def test_only_approvals_and_choices_can_require_presence(ask: Any) -> None:
    """Nothing else approves anything, and the author should notice the mistake."""
    with pytest.raises(UsageError):
        ask("Why?", presence=True)


def test_no_deadline_approves_in_place_of_a_human() -> None:
    """A default that approves would make the signature optional: one only had to wait."""
    with pytest.raises(UsageError):
        Approval("Ship?", "x", presence=True, deadline=DAY, default=True)
    with pytest.raises(UsageError):
        require_presence(Approval("Ship?", "x", deadline=DAY, default=True).to_json())
    with pytest.raises(UsageError):
        Choice(
            "Go?", OPTIONS, presence=True, approves=("approve",), deadline=DAY, default="approve"
        )

    Approval("Ship?", "x", presence=True, deadline=DAY, default=False)
    require_presence(Approval("Ship?", "x", deadline=DAY, default=False).to_json())
    Choice("Go?", OPTIONS, presence=True, approves=("approve",), deadline=DAY, default="reject")
