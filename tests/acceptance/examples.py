"""Copies of the examples, as they are shipped."""

import shutil
from pathlib import Path

NOT_COPIED = ("__pycache__", ".signoff")


def copy_example(example: Path, folder: Path) -> None:
    """Copies an example, without files that an earlier run left in its folder."""
    gitignore = example / ".gitignore"
    lines = gitignore.read_text("utf-8").splitlines() if gitignore.exists() else []
    ignored = shutil.ignore_patterns(*NOT_COPIED, *(line.strip("/") for line in lines if line))
    shutil.copytree(example, folder, dirs_exist_ok=True, ignore=ignored)
