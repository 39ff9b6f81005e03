"""What was changed in files, as a patch that `git apply` takes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

NO_NEWLINE = "\\ No newline at end of file\n"


def unified_diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Returns what changed, file by file; empty if nothing did."""
    return "".join(
        _file_diff(path, before.get(path, ""), text)
        for path, text in after.items()
        if before.get(path, "") != text
    )


def _file_diff(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(_lines(old), _lines(new), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}" for line in lines)


def _lines(text: str) -> list[str]:
    # Not `splitlines`, which also ends lines where git does not, such as at a form feed.
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
