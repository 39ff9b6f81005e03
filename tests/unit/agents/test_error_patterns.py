from datetime import UTC, datetime

import pytest

from signoff.agents.error_patterns import failure_error, find_status
from signoff.errors import AgentAuth, AgentError, AgentQuota, AgentTransient

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_a_login_is_asked_for_with_the_way_to_get_one() -> None:
    """`unauthorized` alone sends users searching."""
    error = failure_error("claude", "Please run /login", remedy="set THE_KEY")

    assert type(error) is AgentAuth
    assert "set THE_KEY" in str(error)


def test_a_rate_limit_that_passes_soon_is_waited_out() -> None:
    """Parking a run for two seconds would be absurd."""
    said = "Rate limit reached for gpt-5. Please try again in 2s. (status 429)"

    assert type(failure_error("codex", said, remedy="", now=NOW)) is AgentTransient


def test_a_limit_that_is_used_up_parks_the_run() -> None:
    """Trying again every few seconds for hours does not help."""
    error = failure_error("claude", "Claude AI usage limit reached|1900000000", remedy="", now=NOW)

    assert isinstance(error, AgentQuota)
    assert error.until == datetime.fromtimestamp(1900000000, UTC)


def test_a_quota_that_returns_within_the_minute_is_waited_out() -> None:
    """Some vendors call their limit per minute a quota."""
    said = "You exceeded your current quota. Please retry in 34.07s."

    assert type(failure_error("gemini", said, remedy="", now=NOW)) is AgentTransient


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("Rate limit reached. Please try again in 2s. (status 429)", 2.0),
        ("You exceeded your current quota. Please retry in 34.07s.", 34.07),
        ("The model is overloaded, try again in 5s", 5.0),
        ("The model is overloaded", None),
        ("The model is overloaded, try again in 2h", None),
    ],
)
def test_a_passing_fault_carries_the_programs_word_on_when_to_come_back(
    said: str, after: float | None
) -> None:
    """Asked again sooner, it is refused again, and an attempt is wasted."""
    error = failure_error("codex", said, remedy="", now=NOW)

    assert isinstance(error, AgentTransient)
    assert error.after == after


def test_an_unrecognized_text_is_neither_retried_nor_waited_for() -> None:
    """It may have cost money, and may cost it again."""
    assert type(failure_error("gemini", "segmentation fault", remedy="")) is AgentError


def test_keys_in_the_words_of_a_refusal_are_not_repeated() -> None:
    """OpenAI quotes the key it does not like."""
    error = failure_error("codex", "Incorrect API key provided: sk-abcdef123456", remedy="log in")

    assert "abcdef" not in str(error)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("last status: 429 Too Many Requests", 429),
        ("unexpected status 401 Unauthorized", 401),
        ("API Error: 529 Overloaded", 529),
        ("Request rejected (429) · slow", 429),
        ('{"code": 503}', 503),
        ("it took 500 tokens", None),
    ],
)
def test_the_status_is_found_in_words(text: str, status: int | None) -> None:
    """Most programs pass the server's status on in a sentence."""
    assert find_status(text) == status
