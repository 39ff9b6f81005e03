"""Sorts what a program complains about by who must act.

Programs pass on their vendor's refusals as text, sometimes with the status in it and
sometimes in words of their own. What nothing here recognises stays a plain `AgentError`:
it is neither retried nor waited for.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from signoff.agents.http_errors import SHORT_WAIT, back_at, busy, refused, without_secrets
from signoff.agents.quota_resets import reset_in
from signoff.errors import AgentAuth, AgentBadRequest, AgentError, AgentQuota, AgentTransient

MISUSED = re.compile(
    r"unknown (option|argument|command|flag)|unexpected argument|unrecognized (option|argument)"
    r"|invalid value .* for '--",
    re.IGNORECASE,
)
"""The program does not know how it was called: it is of another age than this code."""

_USED_UP = re.compile(
    r"\b(usage|session|weekly|opus|sonnet) limit|hit your limit|quota exceeded"
    r"|exceeded your (current|daily|monthly) quota|insufficient_quota|out of credits"
    r"|credit balance is too low|terminalquotaerror",
    re.IGNORECASE,
)
_STATUS = re.compile(
    r"(?:status(?: code)?:?|\"?code\"?\s*:|api error:?|error|http|\()\s*([45]\d\d)\b", re.IGNORECASE
)
_WORDS: tuple[tuple[re.Pattern[str], type[AgentError]], ...] = (
    (
        re.compile(
            r"not logged in|/login|log ?in again|invalid api key|api key not valid|no api key"
            r"|must specify the \w+_API_KEY|invalid auth|unauthori[sz]ed|authenticat"
            r"|token (has )?expired|refresh token",
            re.IGNORECASE,
        ),
        AgentAuth,
    ),
    (
        re.compile(
            r"model.{0,80}(not found|not exist|not supported)|models/\S+ is not found"
            r"|issue with the selected model|(prompt|input) is too long|context (length|window)"
            r"|invalid_request|unsupported model",
            re.IGNORECASE,
        ),
        AgentBadRequest,
    ),
    (
        re.compile(
            r"overloaded|rate.?limit|too many requests|resource has been exhausted|high demand"
            r"|temporar|connection|ECONN|ENOTFOUND|fetch failed|network|timed? ?out|try again"
            r"|stream disconnected|server error|internal error",
            re.IGNORECASE,
        ),
        AgentTransient,
    ),
)


def complaint(
    who: str,
    said: str,
    *,
    remedy: str,
    status: int | None = None,
    until: datetime | None = None,
    now: datetime | None = None,
) -> AgentError:
    """Returns the error a program's words mean; `remedy` is what helps when it wants a login."""
    now = now or datetime.now(UTC)
    until = until or reset_in(said, now) or back_at({}, said, now)
    said = without_secrets(said) or "it did not say why"
    status = status or status_in(said)
    if _USED_UP.search(said):
        if until is not None and until - now < SHORT_WAIT:
            return busy(f"{who}: {said}", until, now)
        return AgentQuota(f"{who}: {said}", until=until)
    if status is not None:
        wait = {} if until is None else {"retry-after": f"{max((until - now).total_seconds(), 0)}"}
        return refused(who, status, said, wait, remedy=remedy, now=now)
    for words, kind in _WORDS:
        if not words.search(said):
            continue
        if kind is AgentTransient:
            return busy(f"{who}: {said}", until, now)
        return kind(f"{who}: {said} ({remedy})" if kind is AgentAuth else f"{who}: {said}")
    return AgentError(f"{who} failed: {said}")


def status_in(text: str) -> int | None:
    """Returns the HTTP status a text mentions."""
    found = _STATUS.search(text)
    return int(found[1]) if found else None
