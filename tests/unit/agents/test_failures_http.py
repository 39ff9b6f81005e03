import ssl
from datetime import UTC, datetime, timedelta

import pytest
from httpx import ConnectTimeout, ReadTimeout, UnsupportedProtocol

from signoff.agents.failures import connection_error, redact_line, refusal_error, retry_time
from signoff.core.errors import (
    AgentAuth,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentTimeout,
    AgentTransient,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def classify(status: int, text: str = "", **headers: str) -> AgentError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    until = retry_time(named, text, NOW)
    return refusal_error("The model", status, text, until=until, remedy="check KEY", now=NOW)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, AgentBadRequest),
        (401, AgentAuth),
        (402, AgentQuota),
        (403, AgentAuth),
        (404, AgentBadRequest),
        (408, AgentTransient),
        (409, AgentTransient),
        (413, AgentBadRequest),
        (422, AgentBadRequest),
        (429, AgentTransient),
        (500, AgentTransient),
        (501, AgentBadRequest),
        (502, AgentTransient),
        (503, AgentTransient),
        (529, AgentTransient),
        (307, AgentBadRequest),
    ],
)
def test_a_status_alone_decides_who_must_act(status: int, error: type[AgentError]) -> None:
    """Pointless retries waste hours; a missing retry wastes the run."""
    assert type(classify(status)) is error


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (429, "You exceeded your current quota, please check your plan and billing details."),
        (429, "insufficient_quota"),
        (400, "Your credit balance is too low to access the Anthropic API."),
        (403, "Insufficient credits. Add more on the website."),
        (429, "you've reached your weekly usage limit"),
        (429, "Rate limit exceeded: free-models-per-day"),
    ],
)
def test_a_used_up_plan_differs_from_a_busy_server(status: int, text: str) -> None:
    """Retries do not help, so the run is parked."""
    assert type(classify(status, text)) is AgentQuota


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "This model's maximum context length is 8192 tokens."),
        (400, "max_tokens: 999999 is over the limit of 8192 for this model"),
        (404, "The model `gpt-9` does not exist"),
        (500, "model requires more system memory (9.1 GiB) than is available (3.2 GiB)"),
    ],
)
def test_a_limit_of_the_model_is_a_bad_request(status: int, text: str) -> None:
    """Waiting does not make a context window larger."""
    assert type(classify(status, text)) is AgentBadRequest


@pytest.mark.parametrize(
    ("status", "text", "header", "after"),
    [
        (429, "slow down", "7", 7.0),
        (503, "warming up", "2.5", 2.5),
        (529, "Overloaded", "Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        (429, "Please try again in 250ms.", "", 0.25),
        (503, "long gone", "Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        (503, "closed for maintenance", "3600", None),
        (500, "oops", "", None),
    ],
)
def test_a_transient_error_has_the_retry_time_of_the_server(
    status: int, text: str, header: str, after: float | None
) -> None:
    """An earlier retry would be refused again."""
    error = classify(status, text, retry_after=header)

    assert isinstance(error, AgentTransient)
    assert error.after == after


def test_a_short_wait_outweighs_the_word_quota() -> None:
    """Some vendors call a limit per minute a quota."""
    text = "Quota exceeded for requests per minute"

    assert type(classify(429, text, retry_after="20")) is AgentTransient


def test_a_long_wait_is_a_quota_with_its_reset_time() -> None:
    """The run is parked until then and continues by itself."""
    error = classify(429, "Too many requests", retry_after="3600")

    assert isinstance(error, AgentQuota)
    assert error.until == NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("Rate limit reached (RPD). Please try again in 7m12s.", timedelta(minutes=7, seconds=12)),
        ("Please try again in 1h30m.", timedelta(hours=1, minutes=30)),
        ("Please try again in 250ms.", timedelta(milliseconds=250)),
        ("try again in 1.5s", timedelta(seconds=1.5)),
        ("You will regain access on 2026-04-01 at 00:00 UTC.", datetime(2026, 4, 1, tzinfo=UTC)),
        ("Nothing about time.", None),
        ("try again in a while", None),
        ("access on 2026-99-99 at 00:00 UTC", None),
    ],
)
def test_the_retry_time_is_read_from_the_message(
    text: str, until: timedelta | datetime | None
) -> None:
    """Not every server sends the header."""
    expected = NOW + until if isinstance(until, timedelta) else until

    assert retry_time({}, text, NOW) == expected


@pytest.mark.parametrize(
    ("header", "until"),
    [
        ("120", NOW + timedelta(minutes=2)),
        ("Sun, 01 Mar 2026 15:00:00 GMT", datetime(2026, 3, 1, 15, tzinfo=UTC)),
        ("99999999999999999999", NOW + timedelta(days=366)),
        ("soon", None),
        ("-5", None),
    ],
)
def test_the_retry_time_is_read_from_the_header(header: str, until: datetime | None) -> None:
    """Seconds and dates are both allowed, and an invalid header must not end the run."""
    assert retry_time({"retry-after": header}, "", NOW) == until


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcDEF123456.",
        "Incorrect API key provided: sk-abcDE***********3456.",
        "Authorization: Bearer abcDEF123456 is wrong",
        "the key hunter-abcDEF123456 is wrong",
    ],
)
def test_a_key_in_a_message_is_redacted(text: str) -> None:
    """Servers quote rejected keys, and messages are stored."""
    line = redact_line(text, "hunter-abcDEF123456")

    assert "abcDE" not in line
    assert "[key]" in line


def test_a_message_is_shortened_to_one_line() -> None:
    """The error page of a proxy has kilobytes of markup."""
    line = redact_line("<html>\n" + "<p>sorry</p>\n" * 1000)

    assert len(line) <= 300
    assert "\n" not in line


@pytest.mark.parametrize(
    ("cause", "error"),
    [
        (ReadTimeout(""), AgentTimeout),
        (ConnectTimeout(""), AgentTransient),
        (ConnectionRefusedError(111, "refused"), AgentTransient),
        (ConnectionResetError(104, "reset"), AgentTransient),
        (UnsupportedProtocol("ftp"), AgentBadRequest),
        (ssl.SSLCertVerificationError("self-signed certificate"), AgentBadRequest),
    ],
    ids=lambda value: getattr(value, "__name__", None) or type(value).__name__,
)
def test_a_failed_connection_is_classified_by_its_cause(
    cause: Exception, error: type[AgentError]
) -> None:
    """Clients wrap all errors in one of their own."""
    wrapped = RuntimeError("Connection error.")
    wrapped.__cause__ = cause

    assert type(connection_error("The model", "http://localhost:1", wrapped)) is error
