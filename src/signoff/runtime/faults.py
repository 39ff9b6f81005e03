"""Errors of effects as data: stored in the journal, raised again on replay."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from signoff import errors
from signoff.core.spend import Usage
from signoff.errors import AgentError, AgentQuota, CommandFailed, SignoffError

FREE = Usage(tokens_in=0, tokens_out=0, usd=0.0)

_COST_NOTHING = (errors.AgentQuota, errors.AgentAuth, errors.AgentBadRequest)
"""Refused before any work was done."""

EFFECT_ERRORS = (AgentError, CommandFailed)
"""What a performer may raise; anything else is a bug and stops the run."""


def fault_to_json(error: SignoffError) -> dict[str, Any]:
    """Returns an error as the journal stores it."""
    data: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, AgentQuota) and error.until is not None:
        data["until"] = error.until.timestamp()
    return data


def fault_from_json(data: dict[str, Any]) -> SignoffError:
    """Returns the error to raise when a recorded failure is replayed."""
    kind = getattr(errors, str(data.get("type")), None)
    message = str(data.get("message", ""))
    if kind is AgentQuota and data.get("until") is not None:
        return AgentQuota(message, until=datetime.fromtimestamp(data["until"], UTC))
    if isinstance(kind, type) and issubclass(kind, EFFECT_ERRORS):
        return kind(message)
    return AgentError(message)


def costing(error: AgentError, usage: Usage | None) -> AgentError:
    """Returns the error with what the failed call cost, so that the ledger can count it."""
    error.usage = usage  # type: ignore[attr-defined]  # read by `usage_of`
    return error


def usage_of(error: SignoffError) -> Usage | None:
    """Returns what a failed call cost, or None when nobody knows."""
    usage = getattr(error, "usage", None)
    if isinstance(usage, Usage):
        return usage.cleaned()
    return FREE if isinstance(error, _COST_NOTHING) else None
