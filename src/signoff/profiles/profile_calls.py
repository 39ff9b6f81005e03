"""Calls profiles and checks what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from signoff.error_text import describe_error
from signoff.errors import AuthorError, InvalidParams
from signoff.profiles.model import ProcessingResult
from signoff.profiles.profile import WorkflowProfile
from signoff.profiles.session import ITERATION, NOUNS
from signoff.profiles.transitions import WorkflowPhase


class ProfileError(AuthorError):
    """A profile raised, or returned a wrong value."""


def create_profile(
    profile_class: type[WorkflowProfile], options: Mapping[str, Any]
) -> WorkflowProfile:
    """Returns a new profile with its options."""
    profile: WorkflowProfile = _call_by(f"{profile_class.__name__}()", profile_class)
    # Set here, so that an author's constructor need not know of them.
    profile.options = options
    return profile


def create_prompt(
    profile: WorkflowProfile,
    phase: WorkflowPhase,
    context: Mapping[str, Any],
    iteration: int = 1,
    feedback: str = "",
) -> str:
    """Returns a profile's prompt for a phase, with the engine's placeholders still in it."""
    method = f"generate_{NOUNS[phase]}_prompt"
    # A copy: what a profile changes in its context must not reach the next stage.
    values = {**context, ITERATION: iteration}
    if feedback:
        values["approval_feedback"] = feedback
    text = _call(profile, method, values)
    # An empty prompt would be written, approved and paid for.
    if not isinstance(text, str) or not text.strip():
        raise ProfileError(f"{_name(profile, method)} must return a text, not {_kind(text)}")
    return text


def process_response(profile: WorkflowProfile, phase: WorkflowPhase, text: str) -> ProcessingResult:
    """Returns what a profile found in a response."""
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
        return call(*args)
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
