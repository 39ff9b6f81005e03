"""Copies of the examples, as they are shipped."""

import shutil
from pathlib import Path

LEFT_BEHIND = ("__pycache__", ".signoff")


def copy_example(example: Path, folder: Path) -> None:
    """Copies an example, without what trying it by hand has left in its folder."""
    listed = example / ".gitignore"
    lines = listed.read_text("utf-8").splitlines() if listed.exists() else []
    ignored = shutil.ignore_patterns(*LEFT_BEHIND, *(line.strip("/") for line in lines if line))
    shutil.copytree(example, folder, dirs_exist_ok=True, ignore=ignored)
