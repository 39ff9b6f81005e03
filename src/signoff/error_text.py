"""Describes what an author's code raised: the kind, the message and the line."""

from __future__ import annotations

import sysconfig
import traceback
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent


def describe_error(error: BaseException) -> str:
    """Returns `ValueError: too long (file.py:12)`."""
    return f"{type(error).__name__}: {error_message(error)}{raised_at(error)}"


def error_message(error: BaseException) -> str:
    """Returns what an error says; an author's own kind may fail even at that."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # the failure to tell must not hide what failed
        return "(it cannot be put into words)"


def raised_at(error: BaseException) -> str:
    """Returns ` (file.py:12)`, the innermost line of the author's code; empty where there is none.

    What libraries do is told by their messages; the author looks for the line that called them.
    """
    called = (
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    )
    outside = [
        each for each in called if _is_file(each[0]) and not each[0].is_relative_to(_PACKAGE)
    ]
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
