"""Describes errors that an author's code raised, by class, message and line.

It also has the texts that several packages need for the same error.
"""

from __future__ import annotations

import sysconfig
import traceback
from functools import cache
from pathlib import Path

from signoff.core.errors import AuthorError, StepFailed, StoreError

_PACKAGE = Path(__file__).parents[1]


def describe_error(error: BaseException) -> str:
    """Returns `ValueError: too long (file.py:12)`."""
    return f"{type(error).__name__}: {error_message(error)}{raised_at(error)}"


def unmet(name: str, message: str, error: BaseException) -> str:
    """Returns why a condition does not hold that raised something, with the author's message.

    An error of the author is no problem of the work that the condition is about: it is raised.
    """
    if isinstance(error, AuthorError):
        raise error
    if isinstance(error, StepFailed):
        return f"{message or name} ({error})"
    what = f"raised {describe_error(error)}"
    return f"{message} ({name} {what})" if message else f"{name}: {what}"


def error_message(error: BaseException) -> str:
    """Returns the message of an error; the `__str__` of an author's own class may fail."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # the error itself must not be hidden by this one
        return "(its message cannot be read)"


def raised_at(error: BaseException) -> str:
    """Returns ` (file.py:12)`, the innermost line of the author's code; empty where there is none.

    For an error raised in a library, it is the line that called the library.
    """
    called = (
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    )
    # A relative name is no file: `<string>`, `<frozen importlib>` and the like.
    outside = [
        each for each in called if each[0].is_absolute() and not each[0].is_relative_to(_PACKAGE)
    ]
    own = [each for each in outside if not any(map(each[0].is_relative_to, _libraries()))]
    # Handlers may be installed as a package too; then the outermost line is the author's.
    found = own[-1:] or outside[:1]
    return "".join(f" ({file.name}:{line})" for file, line in found)


@cache
def _libraries() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(Path(paths[key]) for key in ("stdlib", "platstdlib", "purelib", "platlib"))


def lost_work(step: str) -> StoreError:
    """Returns the error of a database that no longer has what a run has done in it."""
    return StoreError(
        f"the work of step {step!r} is no longer in the database: it was restored or "
        "replaced; bring back the database that this run worked on, or start a new run"
    )
