"""Sorts what a model's server refuses by who must act: nobody, a purse, a key, the request.

Providers agree on little but the status code, so the words of the message and the stated
time to come back decide where a code alone would not.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from signoff.errors import (
    AgentAuth,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentTimeout,
    AgentTransient,
)

SHORT_WAIT = timedelta(seconds=60)
"""Whoever says to come back sooner is busy; whoever says later has a limit that is used up."""

_PASSING = frozenset({408, 409, 425, 429})
_HOPELESS = frozenset({501, 505})

_PURSE = re.compile(
    r"insufficient[_ ](quota|credit|balance|fund)|billing|credit balance|out of credits?"
    r"|payment required|usage limits?\b|spend(ing)? limit",
    re.IGNORECASE,
)
"""No patience helps: somebody has to pay, or a period has to end."""

_PERIOD = re.compile(
    r"\bquota\b|per[ _-](day|week|month)|\b(daily|weekly|monthly|hourly)\b|\((RPD|TPD)\)",
    re.IGNORECASE,
)
"""A limit that does not return within a minute."""

_MEMORY = re.compile(r"requires more (system )?memory", re.IGNORECASE)
_WAIT = re.compile(
    r"(?:try again|retry|available)(?: again)? in (?:(\d{1,4})h)?(?:(\d{1,4})m(?!s))?"
    r"(?:(\d{1,7}(?:\.\d+)?)(ms|s))?",
    re.IGNORECASE,
)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:T| at |\s)(\d\d:\d\d)(?::\d\d)?\s*(?:UTC|Z)")

_SILENT = frozenset({"ReadTimeout", "WriteTimeout"})
_UNSENT = frozenset({"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"})
"""By name: the clients stand on different releases of the HTTP library, with the same names."""

_SECRETS = re.compile(r"\b(?:sk|pk|rk|key)-[\w*.…-]{4,}|(?<=Bearer )[^\s\"']+", re.IGNORECASE)


def refused(
    who: str,
    status: int,
    said: str,
    headers: Mapping[str, str],
    *,
    remedy: str,
    now: datetime | None = None,
) -> AgentError:
    """Returns the error a refusal means; `remedy` is what to do about a key it does not like."""
    message = f"{who} answered {status}: {said}" if said else f"{who} answered {status}"
    now = now or datetime.now(UTC)
    until = back_at(headers, said, now)
    if status == 402 or (status in {400, 403, 429} and _PURSE.search(said)):
        return AgentQuota(message, until=until)
    if status == 429:
        return _limited(message, said, until, now)
    if status in {401, 403}:
        return AgentAuth(f"{message} ({remedy})")
    if status in _PASSING or (status >= 500 and status not in _HOPELESS):
        return AgentBadRequest(message) if _MEMORY.search(said) else busy(message, until, now)
    error = AgentBadRequest(message)
    error.status = status
    return error


def busy(message: str, until: datetime | None, now: datetime) -> AgentTransient:
    """Returns the error of a server that can be asked again in a moment, with its own word on when.

    Nobody sits out a long wait, so one is not passed on.
    """
    if until is None or until - now >= SHORT_WAIT:
        return AgentTransient(message)
    return AgentTransient(message, after=max(0.0, (until - now).total_seconds()))


def unreachable(who: str, address: str, error: BaseException) -> AgentError:
    """Returns the error a failed connection means; one that breaks midway counts as well."""
    causes = list(_causes(error))
    names = {type(cause).__name__ for cause in causes}
    why = without_secrets(next((str(c) for c in reversed(causes) if str(c)), ""))
    if names & _SILENT:
        return AgentTimeout(f"{who} at {address} said nothing for too long")
    if names & _UNSENT:
        return AgentBadRequest(f"{who} cannot be asked at {address}: {why}")
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return AgentBadRequest(
            f"{who} at {address} shows a certificate this machine does not trust: {why} "
            "(SSL_CERT_FILE names the certificates to trust)"
        )
    return AgentTransient(f"{who} cannot be reached at {address}: {why} (is it running?)")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def back_at(
    headers: Mapping[str, str], said: str = "", now: datetime | None = None
) -> datetime | None:
    """Returns when the server says it can be asked again, or None when it does not say."""
    now = now or datetime.now(UTC)
    after = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", after):
        return now + timedelta(seconds=min(float(after), 366 * 86400))
    if after:
        try:
            stated = parsedate_to_datetime(after)
        except ValueError:
            return None
        return stated if stated.tzinfo else stated.replace(tzinfo=UTC)
    return _back_in_words(said, now)


def without_secrets(text: str, *secrets: str | None) -> str:
    """Returns a server's words in one short line, with anything like a key taken out."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    line = " ".join(_SECRETS.sub("[key]", text).split())
    return line if len(line) <= 300 else f"{line[:297]}..."


def _limited(
    message: str, said: str, until: datetime | None, now: datetime
) -> AgentQuota | AgentTransient:
    used_up = bool(_PERIOD.search(said)) if until is None else until - now >= SHORT_WAIT
    return AgentQuota(message, until=until) if used_up else busy(message, until, now)


def _back_in_words(said: str, now: datetime) -> datetime | None:
    date = _DATE.search(said)
    if date is not None:
        try:
            return datetime.fromisoformat(f"{date[1]}T{date[2]}:00+00:00")
        except ValueError:
            return None
    wait = _WAIT.search(said)
    if wait is None or not any(wait.groups()):
        return None
    hours, minutes, number, unit = wait.groups()
    seconds = float(number or 0) / (1000 if unit == "ms" else 1)
    return now + timedelta(hours=int(hours or 0), minutes=int(minutes or 0), seconds=seconds)
