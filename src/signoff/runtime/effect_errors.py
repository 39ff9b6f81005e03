"""Errors as data: those of effects, which are raised again on replay, and those of handlers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

from signoff.core import errors
from signoff.core.remedies import Remedy
from signoff.core.spend import Usage
from signoff.core.stop_reason import ErrorInfo
from signoff.runtime.error_text import describe_error, raised_at

E = TypeVar("E", bound=errors.SignoffError)

FREE = Usage(tokens_in=0, tokens_out=0, usd=0.0)

_COST_NOTHING = (errors.AgentQuota, errors.AgentAuth, errors.AgentBadRequest)
"""Refused before any work was done."""

EFFECT_ERRORS = (errors.AgentError, errors.CommandFailed, errors.UnreadableFile)
"""What a performer may raise; anything else is a bug and stops the run."""


_CARRIED = ("agent", "model", "answer", "partial", "available")
"""What errors carry besides their message, as far as the journal stores it as it is."""


def error_to_json(error: errors.SignoffError) -> dict[str, Any]:
    """Returns an error as the journal stores it."""
    data: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    data |= {name: value for name in _CARRIED if (value := getattr(error, name, None))}
    if isinstance(error, errors.AgentQuota) and error.until is not None:
        data["until"] = error.until.timestamp()
    if isinstance(error, errors.AgentBadOutput) and len(error.problems) > 1:
        # The prompt of the retry contains them, so a replay needs exactly these.
        data["problems"] = list(error.problems)
    if error.remedies:
        data["remedies"] = [each.to_json() for each in error.remedies]
    return data


def error_from_json(data: dict[str, Any]) -> errors.SignoffError:
    """Returns the error to raise when a recorded failure is replayed."""
    kind = getattr(errors, str(data.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, EFFECT_ERRORS)):
        kind = errors.AgentError
    error: errors.SignoffError = kind(str(data.get("message", "")))
    vars(error).update({name: data[name] for name in _CARRIED if name in data})
    if isinstance(error, errors.ModelMissing):
        error.available = tuple(error.available)
    if isinstance(error, errors.AgentQuota) and data.get("until") is not None:
        error.until = datetime.fromtimestamp(data["until"], UTC)
    if isinstance(error, errors.AgentBadOutput):
        error.problems = tuple(data.get("problems", error.problems))
    error.remedies = tuple(Remedy.from_json(each) for each in data.get("remedies", ()))
    return error


def with_usage(error: E, usage: Usage | None) -> E:
    """Returns the error with the cost of the failed call, so that the ledger can count it."""
    error.usage = usage  # type: ignore[attr-defined]  # read by `usage_of`
    return error


def usage_of(error: errors.SignoffError) -> Usage | None:
    """Returns what a failed call cost, or None if that is unknown."""
    usage = getattr(error, "usage", None)
    if isinstance(usage, Usage):
        return usage.cleaned()
    return FREE if isinstance(error, _COST_NOTHING) else None


def error_info(error: BaseException, step: str = "") -> ErrorInfo:
    """Returns an error as data; one of an author's own code names the line that raised."""
    kind = type(error).__name__
    if not isinstance(error, errors.SignoffError):
        message = f"the handler of step {step!r} raised {describe_error(error)}"
        return ErrorInfo(kind, message, location=raised_at(error).strip(" ()"))
    agent, model = "", ""
    if isinstance(error, errors.AgentError):
        kind, agent, model = error.kind or kind, error.agent, error.model
    elif isinstance(error, errors.UnknownName) and error.kind == "agent":
        agent = error.name
    return ErrorInfo(kind, str(error), agent, model, remedies=error.remedies)
