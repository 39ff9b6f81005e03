from datetime import UTC, datetime, timedelta

import pytest

from signoff.agents.failures import failure_error, find_reset_time
from signoff.core.errors import AgentAuth, AgentError, AgentQuota, AgentTransient

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_a_missing_login_is_reported_with_its_remedy() -> None:
    """`unauthorized` alone does not tell users what to do."""
    error = failure_error("claude", "Please run /login", remedy="set THE_KEY")

    assert type(error) is AgentAuth
    assert "set THE_KEY" in str(error)


def test_a_used_up_limit_is_a_quota_with_its_reset_time() -> None:
    """Retries do not help until the quota resets."""
    error = failure_error("claude", "Claude AI usage limit reached|1900000000", remedy="", now=NOW)

    assert isinstance(error, AgentQuota)
    assert error.until == datetime.fromtimestamp(1900000000, UTC)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("Rate limit reached. Please try again in 2s. (status 429)", 2.0),
        ("You exceeded your current quota. Please retry in 34.07s.", 34.07),
        ("The model is overloaded, try again in 5s", 5.0),
        ("The model is overloaded", None),
        ("The model is overloaded, try again in 2h", None),
    ],
)
def test_a_transient_error_has_the_retry_time_of_the_message(
    text: str, after: float | None
) -> None:
    """An earlier retry would be refused again."""
    error = failure_error("codex", text, remedy="", now=NOW)

    assert isinstance(error, AgentTransient)
    assert error.after == after


def test_an_unrecognized_text_is_neither_retried_nor_waited_for() -> None:
    """A retry might be billed again."""
    assert type(failure_error("gemini", "segmentation fault", remedy="")) is AgentError


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
def test_the_status_is_found_in_a_sentence(text: str, status: int | None) -> None:
    """Most programs mention the status of the server in a sentence."""
    assert failure_error("gemini", text, remedy="").status == status


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("usage limit reached|1794787200", datetime.fromtimestamp(1794787200, UTC)),
        ("limit · resets 3pm (UTC)", datetime(2026, 11, 15, 15, tzinfo=UTC)),
        ("limit · resets at 9:30am (UTC)", datetime(2026, 11, 16, 9, 30, tzinfo=UTC)),
        ("resets 1pm (Europe/Berlin)", datetime(2026, 11, 16, 12, 0, tzinfo=UTC)),
        ("resets Nov 20, 3pm (UTC)", datetime(2026, 11, 20, 15, tzinfo=UTC)),
        ("resets Jan 2, 12am (UTC)", datetime(2027, 1, 2, 0, tzinfo=UTC)),
        ("Try again in 3 days 2 hours 5 minutes.", NOW + timedelta(days=3, hours=2, minutes=5)),
        ("try again in 45 seconds", NOW + timedelta(seconds=45)),
        ("nothing of the kind", None),
        ("resets Feb 31, 3pm (UTC)", None),
        ("resets Foo 3, 3pm (UTC)", None),
    ],
)
def test_the_reset_time_is_read_from_the_text(text: str, moment: datetime | None) -> None:
    """A wrong time would park the run too long, or waste its retries."""
    assert find_reset_time(text, NOW) == moment


def test_a_date_without_a_zone_is_local_time() -> None:
    """Programs print times for the user of this machine."""
    found = find_reset_time("try again at Nov 16th, 2026 12:13 AM.", NOW)

    assert found is not None
    assert found == datetime(2026, 11, 16, 0, 13).astimezone()
