"""Turns what user code raised into data, with the line that raised it."""

from __future__ import annotations

from signoff.core.error_info import ErrorInfo
from signoff.error_text import describe_error, raised_at
from signoff.errors import AgentError, SignoffError, UnknownName


def error_info(error: BaseException, step: str = "") -> ErrorInfo:
    """Returns an error as data; one of an author's own code names the line that raised."""
    kind = type(error).__name__
    if not isinstance(error, SignoffError):
        message = f"the handler of step {step!r} raised {describe_error(error)}"
        return ErrorInfo(kind, message, location=raised_at(error).strip(" ()"))
    agent, model = "", ""
    if isinstance(error, AgentError):
        agent, model = error.agent, error.model
    elif isinstance(error, UnknownName) and error.kind == "agent":
        agent = error.name
    return ErrorInfo(kind, str(error), agent, model, remedies=error.remedies)
