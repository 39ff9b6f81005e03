"""Calls profiles and checks what they return.

Profiles never do I/O. While one is called, an attempt to open a file, to change the file system,
to start a program or to open a connection is refused. Imports and templates are excepted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from signoff.errors import AuthorError
from signoff.error_text import describe_error
from signoff.profiles.model import ProcessingResult
from signoff.profiles.phases import WorkflowPhase
from signoff.profiles.profile import WorkflowProfile
from signoff.profiles.session_files import NOUNS


class ProfileError(AuthorError):
    """A profile raised, returned something else than it should, or tried to do I/O."""


_FORBIDDEN = frozenset(
    {
        "os.chmod", "os.link", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir",
        "os.scandir", "os.symlink", "os.system", "os.truncate", "os.exec", "os.posix_spawn",
        "shutil.copyfile", "shutil.move", "shutil.rmtree", "socket.bind", "socket.connect",
        "sqlite3.connect", "subprocess.Popen", "tempfile.mkdtemp", "tempfile.mkstemp",
    }
)  # fmt: skip
"""Audit events of the standard library that a profile must not cause; `open` is judged alone."""

_CODE = (".py", ".pyc", ".so", ".pyd")
"""What an import opens."""

_calling: ContextVar[bool] = ContextVar("signoff_profile_call", default=False)


def create_prompt(
    profile: WorkflowProfile, phase: WorkflowPhase, context: Mapping[str, Any], feedback: str = ""
) -> str:
    """Returns a profile's prompt for a phase, with the engine's placeholders still in it."""
    method = f"generate_{NOUNS[phase]}_prompt"
    given = {**context, **({"approval_feedback": feedback} if feedback else {})}
    text = _call(profile, method, given)
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
    call: Callable[..., Any] = getattr(profile, method)
    try:
        with _without_io():
            return call(*args)
    except Exception as error:
        # The profile's own code may raise anything.
        raise ProfileError(f"{_name(profile, method)} failed: {describe_error(error)}") from error


@contextmanager
def _without_io() -> Iterator[None]:
    _watch()
    token = _calling.set(True)
    try:
        yield
    finally:
        _calling.reset(token)


@contextmanager
def reading_template() -> Iterator[None]:
    """Allows what renders templates to read them."""
    token = _calling.set(False)
    try:
        yield
    finally:
        _calling.reset(token)


@cache
def _watch() -> None:
    """Installs the hook, once and for good: Python cannot remove one."""
    sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event != "open" and event not in _FORBIDDEN:
        return
    if not _calling.get() or (event == "open" and str(args[0]).endswith(_CODE)):
        return
    target = f" {args[0]!r}" if args else ""
    raise PermissionError(f"profiles do no I/O, and this one tried {event}{target}")


def _name(profile: WorkflowProfile, method: str) -> str:
    return f"{type(profile).__name__}.{method}"


def _kind(value: Any) -> str:
    return "an empty text" if isinstance(value, str) else repr(value)[:80]
