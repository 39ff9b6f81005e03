"""Turns refusals of a server, and messages of a program, into errors by who must act.

A transient error is retried, a quota needs money or time, a key needs its owner, and a bad
request needs its author. Providers agree on little but the status code, so where the code
alone is ambiguous, the message and the stated retry time decide. Programs report vendors'
errors as text.

A retry time is a time of day, a date, a duration or seconds since 1970. A time of day without
a zone is in this machine's zone.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from signoff.agents.answer import as_dict
from signoff.core.errors import (
    AgentAuth,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentTimeout,
    AgentTransient,
)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}

_EPOCH = re.compile(r"(?:\||resets?(?:_at|At)?\D{0,4})(1[6-9]\d{8}|[2-4]\d{9})\b")
_MOMENT = re.compile(
    r"(?:resets?|try again|available)(?: again)?(?: at| on)?\s+"
    r"(?:(?P<month>[a-z]{3})[a-z]*\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{4}),?\s+)?"
    r"(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]m)"
    r"(?:\s*\((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:T| at |\s)(\d\d:\d\d)(?::\d\d)?\s*(?:UTC|Z)")
_SPAN = re.compile(
    r"(?:again|retry|available|resets?) in((?:\s*(?:and\s+)?\d{1,7}(?:\.\d+)?\s*[a-z]+,?)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d{1,7}(?:\.\d+)?)\s*(ms|[dhms])", re.IGNORECASE)


def find_reset_time(text: str, now: datetime) -> datetime | None:
    """Returns the time at which a text says a quota resets, or None when it names none."""
    # From the most to the least exact form: a text that has a date often has a time of day, too.
    if epoch := _EPOCH.search(text):
        return datetime.fromtimestamp(int(epoch[1]), UTC)
    try:
        if date := _DATE.search(text):
            return datetime.fromisoformat(f"{date[1]}T{date[2]}:00+00:00")
        if span := _SPAN.search(text):
            parts = _PART.findall(span[1])
            seconds = sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts)
            return now + timedelta(seconds=seconds)
        moment = _MOMENT.search(text)
        return _parse_moment(moment, now) if moment is not None else None
    except ValueError:
        return None  # such as February 31


def _parse_moment(match: re.Match[str], now: datetime) -> datetime:
    local_now = now.astimezone(_parse_zone(match["zone"]))
    hour = int(match["hour"]) % 12 + (12 if match["half"].lower() == "pm" else 0)
    minute = int(match["minute"] or 0)
    reset = local_now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if match["month"] is None:
        return reset if reset > local_now else reset + timedelta(days=1)
    month = _MONTHS.index(match["month"].lower()) + 1
    reset = reset.replace(month=month, day=int(match["day"]))
    if match["year"] is not None:
        return reset.replace(year=int(match["year"]))
    # A date without a year that has passed belongs to the next year.
    return reset if reset > local_now else reset.replace(year=reset.year + 1)


def _parse_zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (OSError, ValueError):
        return None


SHORT_WAIT = timedelta(seconds=60)
"""A server with a shorter retry time is busy; with a longer one, a quota is used up."""

_TRANSIENT = frozenset({408, 409, 425, 429})
_PERMANENT = frozenset({501, 505})

_BILLING = re.compile(
    r"insufficient[_ ](quota|credit|balance|fund)|billing|credit balance|out of credits?"
    r"|payment required|usage limits?\b|spend(ing)? limit",
    re.IGNORECASE,
)
"""Retrying does not help: someone has to pay, or a billing period has to end."""

_PERIOD = re.compile(
    r"\bquota\b|per[ _-](day|week|month)|\b(daily|weekly|monthly|hourly)\b|\((RPD|TPD)\)",
    re.IGNORECASE,
)
"""A limit that does not reset within a minute."""

_MEMORY = re.compile(r"requires more (system )?memory", re.IGNORECASE)

_TIMEOUTS = frozenset({"ReadTimeout", "WriteTimeout"})
_INVALID = frozenset({"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"})
"""Matched by name: the clients use different releases of the HTTP library."""

_SECRETS = re.compile(r"\b(?:sk|pk|rk|key)-[\w*.…-]{4,}|(?<=Bearer )[^\s\"']+", re.IGNORECASE)


class ServerRefusal(NamedTuple):
    """A server's response that is not an answer."""

    status: int
    text: str
    headers: Mapping[str, str] = {}


def error_body(error: Any) -> dict[str, Any]:
    """Returns the error object in the body of a client's error: `body["error"]`, or the body."""
    body = as_dict(error.body)
    return as_dict(body.get("error")) or body


def server_message(error: Any) -> str:
    """Returns the server's message, without the client's dump of the whole body."""
    body = error_body(error)
    parts = [str(body[key]) for key in ("code", "type", "message") if body.get(key)]
    return ": ".join(parts) or str(error.body or error)


def unwrapped_message(text: str) -> str:
    """Returns the server's own message where a program has passed on its whole JSON response."""
    try:
        response = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except ValueError:
        return text
    error = as_dict(as_dict(response).get("error"))
    kind = f"{error['type']}: " if error.get("type") else ""
    status = f" (status {error['code']})" if isinstance(error.get("code"), int) else ""
    return f"{kind}{error['message']}{status}" if error.get("message") else text


def refusal_error(
    source: str,
    status: int,
    text: str,
    *,
    until: datetime | None,
    remedy: str,
    now: datetime | None = None,
) -> AgentError:
    """Returns the error that a refusal means.

    `until` is when the server allows a retry; `remedy` says how to fix a rejected key.
    """
    message = f"{source} answered {status}: {text}" if text else f"{source} answered {status}"
    error = _refusal(message, status, text, until, remedy, now or datetime.now(UTC))
    error.status = status
    return error


def _refusal(
    message: str, status: int, text: str, until: datetime | None, remedy: str, now: datetime
) -> AgentError:
    # Money first: vendors report an empty account with statuses that otherwise mean a bad request,
    # a bad key or a busy server, and a retry helps in none of these cases.
    if status == 402 or (status in {400, 403, 429} and _BILLING.search(text)):
        return AgentQuota(message, until=until)
    if status == 429:
        used_up = bool(_PERIOD.search(text)) if until is None else until - now >= SHORT_WAIT
        return AgentQuota(message, until=until) if used_up else transient_error(message, until, now)
    if status in {401, 403}:
        return AgentAuth(f"{message} ({remedy})")
    may_pass = status in _TRANSIENT or (status >= 500 and status not in _PERMANENT)
    if may_pass and not _MEMORY.search(text):
        return transient_error(message, until, now)
    return AgentBadRequest(message)


def transient_error(message: str, until: datetime | None, now: datetime) -> AgentTransient:
    """Returns the error of a busy server, with its retry time when that is short.

    A long wait is left out: a retry does not wait that long.
    """
    if until is None or until - now >= SHORT_WAIT:
        return AgentTransient(message)
    return AgentTransient(message, after=max(0.0, (until - now).total_seconds()))


def connection_error(source: str, address: str, error: BaseException) -> AgentError:
    """Returns the error that a failed or broken connection means."""
    chain = list(causes(error))
    names = {type(cause).__name__ for cause in chain}
    reason = redact_line(next((str(cause) for cause in reversed(chain) if str(cause)), ""))
    if names & _TIMEOUTS:
        return AgentTimeout(f"{source} at {address} sent nothing for too long")
    if names & _INVALID:
        return AgentBadRequest(f"{source} cannot be called at {address}: {reason}")
    # A retry cannot change a certificate, so this is not one of the errors that may pass.
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in chain):
        return AgentBadRequest(
            f"{source} at {address} has a certificate that this machine does not trust: {reason} "
            "(set SSL_CERT_FILE to the certificates to trust)"
        )
    return AgentTransient(f"{source} cannot be reached at {address}: {reason} (is it running?)")


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error and the errors that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def retry_time(
    headers: Mapping[str, str], text: str = "", now: datetime | None = None
) -> datetime | None:
    """Returns the time at which the server allows a retry, or None when it gives none."""
    now = now or datetime.now(UTC)
    after = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", after):
        return now + timedelta(seconds=min(float(after), 366 * 86400))
    if after:
        try:
            moment = parsedate_to_datetime(after)
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return find_reset_time(text, now)


def redact_line(text: str, *secrets: str | None) -> str:
    """Returns a server's message as one short line, with anything like a key removed."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    line = " ".join(_SECRETS.sub("[key]", text).split())
    return line if len(line) <= 300 else f"{line[:297]}..."


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
_MAY_PASS = re.compile(
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
    mentioned = _STATUS.search(text)
    status = status or (int(mentioned[1]) if mentioned else None)
    if status is not None:
        return refusal_error(source, status, text, until=until, remedy=remedy, now=now)
    # The order matters: "authentication failed, try again" needs a login, not another attempt.
    if _AUTH.search(text):
        return AgentAuth(f"{message} ({remedy})")
    if _BAD_REQUEST.search(text):
        return AgentBadRequest(message)
    if _MAY_PASS.search(text):
        return transient_error(message, until, now)
    return AgentError(f"{source} failed: {text}")
