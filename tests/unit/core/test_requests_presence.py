"""Which answers need a signature, and which requests cannot ask for one."""

from datetime import timedelta
from typing import Any

import pytest

from signoff.core.errors import UsageError
from signoff.core.requests import Approval, Choice, Question, Request, Response, needs_presence

OPTIONS = ["approve", "change", "reject"]
DAY = timedelta(days=1)


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
        Choice(
            "Go?", OPTIONS, presence=True, approves=("approve",), deadline=DAY, default="approve"
        )

    Approval("Ship?", "x", presence=True, deadline=DAY, default=False)
    Choice("Go?", OPTIONS, presence=True, approves=("approve",), deadline=DAY, default="reject")
