"""Errors of effects as data: stored in the journal and raised again on replay."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from signoff import errors
from signoff.core.spend import Usage
from signoff.errors import (
    AgentBadOutput,
    AgentError,
    AgentQuota,
    CommandFailed,
    ModelMissing,
    SignoffError,
)
from signoff.remedies import Remedy

FREE = Usage(tokens_in=0, tokens_out=0, usd=0.0)

_COST_NOTHING = (errors.AgentQuota, errors.AgentAuth, errors.AgentBadRequest)
"""Refused before any work was done."""

_WHO = ("agent", "model")

EFFECT_ERRORS = (AgentError, CommandFailed)
"""What a performer may raise; anything else is a bug and stops the run."""


def error_to_json(error: SignoffError) -> dict[str, Any]:
    """Returns an error as the journal stores it."""
    data: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, AgentQuota) and error.until is not None:
        data["until"] = error.until.timestamp()
    if isinstance(error, AgentError):
        data |= {name: value for name in _WHO if (value := getattr(error, name))}
    if isinstance(error, AgentBadOutput):
        data |= {"answer": error.answer} if error.answer else {}
        # The prompt of the retry contains them, so a replay needs exactly these.
        data |= {"problems": list(error.problems)} if len(error.problems) > 1 else {}
    if isinstance(error, ModelMissing):
        data["available"] = list(error.available)
    if error.remedies:
        data["remedies"] = [each.to_json() for each in error.remedies]
    return data


def error_from_json(data: dict[str, Any]) -> SignoffError:
    """Returns the error to raise when a recorded failure is replayed."""
    error = _raised_again(data)
    if isinstance(error, AgentError):
        error.agent, error.model = (str(data.get(name, "")) for name in _WHO)
    error.remedies = tuple(Remedy.from_json(each) for each in data.get("remedies", ()))
    return error


def _raised_again(data: dict[str, Any]) -> SignoffError:
    kind = getattr(errors, str(data.get("type")), None)
    message = str(data.get("message", ""))
    if kind is AgentQuota and data.get("until") is not None:
        return AgentQuota(message, until=datetime.fromtimestamp(data["until"], UTC))
    if kind is AgentBadOutput:
        answer = str(data.get("answer", ""))
        return AgentBadOutput(message, *data.get("problems", ()), answer=answer)
    if kind is ModelMissing:
        return ModelMissing(message, available=data.get("available", ()))
    if isinstance(kind, type) and issubclass(kind, EFFECT_ERRORS):
        return kind(message)
    return AgentError(message)


def with_usage(error: AgentError, usage: Usage | None) -> AgentError:
    """Returns the error with the cost of the failed call, so that the ledger can count it."""
    error.usage = usage  # type: ignore[attr-defined]  # read by `usage_of`
    return error


def usage_of(error: SignoffError) -> Usage | None:
    """Returns what a failed call cost, or None if that is unknown."""
    usage = getattr(error, "usage", None)
    if isinstance(usage, Usage):
        return usage.cleaned()
    return FREE if isinstance(error, _COST_NOTHING) else None
