"""Turns refusals of a model server into errors by who must act.

A transient error is retried, a quota needs money or time, a key needs its owner, and a bad
request needs its author. Providers agree on little but the status code, so where the code
alone is ambiguous, the message and the stated retry time decide.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from signoff.agents.quota_resets import find_reset_time
from signoff.agents.vendor_json import as_dict
from signoff.errors import (
    AgentAuth,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentTimeout,
    AgentTransient,
)

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
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in chain):
        return AgentBadRequest(
            f"{source} at {address} has a certificate that this machine does not trust: {reason} "
            "(set SSL_CERT_FILE to the certificates to trust)"
        )
    return AgentTransient(f"{source} cannot be reached at {address}: {reason} (is it running?)")


def value_error_text(error: ValueError) -> str:
    """Returns what a client found wrong with a response, without links to its library's manual."""
    details = getattr(error, "errors", None)
    if not callable(details):
        return str(error)
    mistakes = ((".".join(map(str, each["loc"])), each["msg"]) for each in details())
    return "; ".join(": ".join(filter(None, mistake)) for mistake in mistakes)


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
