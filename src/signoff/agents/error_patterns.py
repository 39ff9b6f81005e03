"""Turns the error text of an agent program into an error that says who must act.

Programs pass on their vendor's refusals as text, sometimes with an HTTP status in it and
sometimes in their own wording. A text that matches no pattern stays a plain `AgentError`,
which is neither retried nor waited for.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from signoff.agents.http_errors import SHORT_WAIT, redact_line, refusal_error, transient_error
from signoff.agents.quota_resets import find_reset_time
from signoff.errors import AgentAuth, AgentBadRequest, AgentError, AgentQuota

USAGE_ERROR = re.compile(
    r"unknown (option|argument|command|flag)|unexpected argument|unrecognized (option|argument)"
    r"|invalid value .* for '--",
    re.IGNORECASE,
)
"""The program rejects its own command line, so its version does not match this code."""

_QUOTA = re.compile(
    r"\b(usage|session|weekly|opus|sonnet) limit|hit your limit|quota exceeded"
    r"|exceeded your (current|daily|monthly) quota|insufficient_quota|out of credits"
    r"|credit balance is too low|terminalquotaerror",
    re.IGNORECASE,
)
_STATUS = re.compile(
    r"(?:status(?: code)?:?|\"?code\"?\s*:|api error:?|error|http|\()\s*([45]\d\d)\b", re.IGNORECASE
)
_AUTH = re.compile(
    r"not logged in|/login|log ?in again|invalid api key|api key not valid|no api key"
    r"|must specify the \w+_API_KEY|invalid auth|unauthori[sz]ed|authenticat"
    r"|token (has )?expired|refresh token",
    re.IGNORECASE,
)
_BAD_REQUEST = re.compile(
    r"model.{0,80}(not found|not exist|not supported)|models/\S+ is not found"
    r"|issue with the selected model|(prompt|input) is too long|context (length|window)"
    r"|invalid_request|unsupported model",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"overloaded|rate.?limit|too many requests|resource has been exhausted|high demand"
    r"|temporar|connection|ECONN|ENOTFOUND|fetch failed|network|timed? ?out|try again"
    r"|stream disconnected|server error|internal error",
    re.IGNORECASE,
)


def failure_error(
    source: str,
    text: str,
    *,
    remedy: str,
    status: int | None = None,
    until: datetime | None = None,
    now: datetime | None = None,
) -> AgentError:
    """Returns the error that a program's text means; `remedy` helps when it needs a login."""
    now = now or datetime.now(UTC)
    until = until or find_reset_time(text, now)
    text = redact_line(text) or "no reason given"
    message = f"{source}: {text}"
    # A used-up quota comes first: vendors report it with statuses that usually mean "retry".
    if _QUOTA.search(text):
        if until is not None and until - now < SHORT_WAIT:
            return transient_error(message, until, now)
        return AgentQuota(message, until=until)
    status = status or find_status(text)
    if status is not None:
        return refusal_error(source, status, text, until=until, remedy=remedy, now=now)
    # The order matters: "authentication failed, try again" needs a login, not another attempt.
    if _AUTH.search(text):
        return AgentAuth(f"{message} ({remedy})")
    if _BAD_REQUEST.search(text):
        return AgentBadRequest(message)
    if _TRANSIENT.search(text):
        return transient_error(message, until, now)
    return AgentError(f"{source} failed: {text}")


def find_status(text: str) -> int | None:
    """Returns the HTTP status that a text mentions, or None."""
    match = _STATUS.search(text)
    return int(match[1]) if match else None
