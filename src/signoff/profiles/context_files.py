"""Reads the files that the context of a session names, so that the profile need not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signoff.documents.files import read_text
from signoff.errors import InvalidParams, Problem

SUFFIX = "_text"
"""The text of the file in the field `ddl` is in the context as `ddl_text`."""


def read_context_files(
    schema: Mapping[str, Mapping[str, Any]], context: Mapping[str, Any], folder: Path
) -> dict[str, str]:
    """Returns the texts of the files that a context names; raises `InvalidParams`.

    These are the fields of type `path` with `exists: true`. Relative paths start in `folder`;
    a path that leads to a folder has no text.
    """
    problems: list[Problem] = []
    texts: dict[str, str] = {}
    for name, field in schema.items():
        path = context.get(name)
        if not path or field.get("type") != "path" or not field.get("exists"):
            continue
        file = Path(folder, path)
        text = None if file.is_dir() else read_text(file, problems, name=f"{name}: {path}")
        if text is not None:
            texts[f"{name}{SUFFIX}"] = text
    if problems:
        raise InvalidParams(problems)
    return texts
