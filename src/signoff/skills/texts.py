"""Reads the instructions of a skill from a Markdown file, so that they can be edited as text.

The file has the name of the skill's module and lies beside it. A comment of its own line begins
each text and names it:

    <!-- scope -->

    Read the task. Do: ...
"""

from __future__ import annotations

import re
from pathlib import Path

from signoff.documents.regular_files import read_regular

_NAME = re.compile(r"^<!-- ([\w.-]+) -->$", re.MULTILINE)
_MOST_BYTES = 1_000_000


def texts_beside(module: str) -> dict[str, str]:
    """Returns the texts of the Markdown file beside a module (its `__file__`), by name."""
    path = Path(module).with_suffix(".md")
    _before, *parts = _NAME.split(read_regular(path, _MOST_BYTES).decode())
    names, texts = parts[::2], parts[1::2]
    return {name: text.strip("\n") for name, text in zip(names, texts, strict=True)}
