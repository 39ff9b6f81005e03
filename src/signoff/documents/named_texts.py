"""Texts in a Markdown file, each with a name, so that long instructions are edited as text.

A comment on a line of its own begins a text and names it, perhaps with a title:

    <!-- scope: Pin down the change -->

    Read the task. Do: ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from signoff.documents.regular_files import read_regular

_HEADING = re.compile(r"^<!-- ([\w.-]+)(?:: (.+))? -->$", re.MULTILINE)
_MOST_BYTES = 1_000_000


class NamedText(NamedTuple):
    """One text of a file."""

    name: str
    title: str
    text: str


def named_texts(path: Path) -> Iterator[NamedText]:
    """Yields the texts of a file in their order."""
    # A pattern with two groups splits a text into the parts between its matches, and both groups.
    _before, *parts = _HEADING.split(read_regular(path, _MOST_BYTES).decode())
    for name, title, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        yield NamedText(name, title or "", text.strip("\n"))


def read_texts(path: Path) -> dict[str, str]:
    """Returns the texts of a file by their names."""
    return {each.name: each.text for each in named_texts(path)}
