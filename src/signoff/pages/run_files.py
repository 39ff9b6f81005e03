"""The list of a run's files."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.pages.html import Markup, tag
from signoff.pages.parts import run_path, scrollable, table


def file_list(run: str, files: Sequence[tuple[str, int]]) -> Markup:
    """Returns a table of files by path, each with its size in bytes."""
    if not files:
        return tag("p", "This run has no files.", class_="soft")
    rows = [
        (tag("a", path, href=run_path(run, "files", *path.split("/"))), f"{size:,}")
        for path, size in files
    ]
    return scrollable("Files", table(("File", "Bytes"), rows, numbers=1))
