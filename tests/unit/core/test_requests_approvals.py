"""Which requests are approvals, and what the settings require of them."""

from datetime import timedelta

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


def test_no_deadline_approves_where_the_settings_require_presence() -> None:
    """A default that approves would make the signature optional: one only had to wait."""
    with pytest.raises(UsageError):
        require_presence(Approval("Ship?", "x", deadline=DAY, default=True).to_json())

    require_presence(Approval("Ship?", "x", deadline=DAY, default=False).to_json())


def test_an_approval_is_one_whether_or_not_it_had_to_be_signed() -> None:
    """A check of all approvals has to list those that no one signed, too."""
    choice = Choice("Go?", OPTIONS, approves=("approve",)).to_json()

    assert approves(Approval("Ship?", "x").to_json(), True)
    assert not approves(Approval("Ship?", "x").to_json(), False)
    assert [each for each in OPTIONS if approves(choice, each)] == ["approve"]
    assert not approves(Choice("Which?", OPTIONS).to_json(), "approve")
