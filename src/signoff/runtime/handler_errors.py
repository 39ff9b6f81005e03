"""Says what an author's own code raised, and where."""

from __future__ import annotations

import sysconfig
import traceback
from functools import cache
from pathlib import Path

from signoff.core.error_info import ErrorInfo
from signoff.errors import AgentError, SignoffError, UnknownName

_ENGINE = Path(__file__).parents[1]


def error_info(error: BaseException, step: str = "") -> ErrorInfo:
    """Returns an error as data; one of an author's own code names the line that raised."""
    kind = type(error).__name__
    if not isinstance(error, SignoffError):
        message = f"the handler of step {step!r} raised {in_words(error)}"
        return ErrorInfo(kind, message, location=place_raised(error).strip(" ()"))
    agent, model = "", ""
    if isinstance(error, AgentError):
        agent, model = error.agent, error.model
    elif isinstance(error, UnknownName) and error.kind == "agent":
        agent = error.name
    return ErrorInfo(kind, str(error), agent, model, remedies=error.remedies)


def in_words(error: BaseException) -> str:
    """Returns `ValueError: too long (file.py:12)`."""
    return f"{type(error).__name__}: {words_of(error)}{place_raised(error)}"


def words_of(error: BaseException) -> str:
    """Returns what an error says; an author's own kind may fail even at that."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # the failure to tell must not hide what failed
        return "(it cannot be put into words)"


def place_raised(error: BaseException) -> str:
    """Returns ` (file.py:12)`, the innermost line of the author's code; empty where there is none.

    What libraries do is told by their messages; the author looks for the line that called them.
    """
    called = (
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    )
    outside = [each for each in called if _is_file(each[0]) and not each[0].is_relative_to(_ENGINE)]
    own = [each for each in outside if not _is_library(each[0])]
    # Functions that were installed as a package are some author's too.
    found = own[-1:] or outside[:1]
    return "".join(f" ({file.name}:{line})" for file, line in found)


def _is_file(path: Path) -> bool:
    return path.is_absolute()  # not `<string>`, `<frozen importlib>` and the like


def _is_library(file: Path) -> bool:
    return any(file.is_relative_to(folder) for folder in _libraries())


@cache
def _libraries() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(Path(paths[key]) for key in ("stdlib", "platstdlib", "purelib", "platlib"))
