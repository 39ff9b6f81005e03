"""Renders a template without naming a file for it."""

from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from signoff.documents.templates import OpenPrompt, render_template


def render_text(text: str, variables: Mapping[str, Any], keep: Collection[str] = ()) -> OpenPrompt:
    """Renders a text as the file `t`."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "t")
        file.write_bytes(text.encode())
        return render_template(file, variables, keep=keep)
