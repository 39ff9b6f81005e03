"""Calls profiles and checks what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from signoff.error_text import describe_error
from signoff.errors import AuthorError, InvalidParams
from signoff.profiles.no_io import call_without_io
from signoff.profiles.phases import WorkflowPhase
from signoff.profiles.profile import WorkflowProfile
from signoff.profiles.session_files import NOUNS

if TYPE_CHECKING:
    from signoff.profiles.model import ProcessingResult


class ProfileError(AuthorError):
    """A profile raised, returned a wrong value, or tried to do I/O."""


def create_profile(profile_class: type[WorkflowProfile]) -> WorkflowProfile:
    """Returns a new profile; its constructor does no I/O either."""
    return _call_by(f"{profile_class.__name__}()", profile_class)  # type: ignore[no-any-return]


def create_prompt(
    profile: WorkflowProfile, phase: WorkflowPhase, context: Mapping[str, Any], feedback: str = ""
) -> str:
    """Returns a profile's prompt for a phase, with the engine's placeholders still in it."""
    method = f"generate_{NOUNS[phase]}_prompt"
    values = {**context, **({"approval_feedback": feedback} if feedback else {})}
    text = _call(profile, method, values)
    if not isinstance(text, str) or not text.strip():
        raise ProfileError(f"{_name(profile, method)} must return a text, not {_kind(text)}")
    return text


def process_response(profile: WorkflowProfile, phase: WorkflowPhase, text: str) -> ProcessingResult:
    """Returns what a profile found in a response."""
    # Imported here because it takes longer than a step by hand that has no response.
    from signoff.profiles.model import ProcessingResult

    method = f"process_{NOUNS[phase]}_response"
    result = _call(profile, method, text)
    if not isinstance(result, ProcessingResult):
        raise ProfileError(
            f"{_name(profile, method)} must return a ProcessingResult, not {_kind(result)}"
        )
    return result


def standards_config(profile: WorkflowProfile, context: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns how a profile configures its standards."""
    config = _call(profile, "get_standards_config", dict(context))
    if not isinstance(config, Mapping):
        name = _name(profile, "get_standards_config")
        raise ProfileError(f"{name} must return a mapping, not {_kind(config)}")
    return config


def _call(profile: WorkflowProfile, method: str, *args: Any) -> Any:
    return _call_by(_name(profile, method), getattr(profile, method), *args)


def _call_by(name: str, call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call_without_io(call, *args)
    except InvalidParams:
        # Reported like a problem with any other parameter.
        raise
    except (Exception, SystemExit) as error:
        # The profile's own code may raise anything.
        raise ProfileError(f"{name} failed: {describe_error(error)}") from error


def _name(profile: WorkflowProfile, method: str) -> str:
    return f"{type(profile).__name__}.{method}"


def _kind(value: Any) -> str:
    return "an empty text" if isinstance(value, str) else repr(value)[:80]
