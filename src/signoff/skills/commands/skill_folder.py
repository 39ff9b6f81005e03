"""The folder in which a coding agent looks for skills: what is installed there.

Files that their user edited, and anything that is not a plain file in a plain folder, stay as they
are.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from signoff.documents.files import MOST_BYTES
from signoff.documents.regular_files import read_regular, translate_write_errors
from signoff.skills.commands.skill_file import FILE, has_mark, is_untouched


class InstallAction(StrEnum):
    """What was done with a file."""

    INSTALLED = "installed"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    KEPT = "kept"


@dataclass(frozen=True)
class FileAction:
    """What was done with the file of a skill, and why it was kept if it was."""

    name: str
    path: Path
    action: InstallAction
    reason: str = ""


@dataclass(frozen=True)
class SkillFolder:
    """A folder with a folder for each skill, such as `.claude/skills`."""

    path: Path

    def install(self, name: str, text: str) -> FileAction:
        """Writes the file of a skill, unless there is one that is not ours to change."""
        file = self.path / name / FILE
        with translate_write_errors(file):
            before = _read(file)
            if reason := _foreign(file, before):
                return FileAction(name, file, InstallAction.KEPT, reason)
            if before == text:
                return FileAction(name, file, InstallAction.UNCHANGED)
            _write(file, text)
        return FileAction(
            name, file, InstallAction.INSTALLED if before is None else InstallAction.UPDATED
        )

    def uninstall(self, name: str) -> FileAction:
        """Removes the file of a skill, and its folder if that is empty then."""
        file = self.path / name / FILE
        with translate_write_errors(file):
            if reason := _foreign(file, _read(file)):
                return FileAction(name, file, InstallAction.KEPT, reason)
            file.unlink()
            with suppress(OSError):
                file.parent.rmdir()
        return FileAction(name, file, InstallAction.REMOVED)

    def names(self) -> list[str]:
        """Returns all skills in the folder, installed or not."""
        with suppress(OSError):
            return sorted(each.parent.name for each in self.path.glob(f"*/{FILE}"))
        return []

    def installed_names(self) -> list[str]:
        """Returns the skills that were installed, even if they were edited since."""
        return [name for name in self.names() if self._was_installed(name)]

    def _was_installed(self, name: str) -> bool:
        with suppress(OSError):
            return has_mark(_read(self.path / name / FILE) or "")
        return False


def _read(file: Path) -> str | None:
    """Returns the text of a file; None if there is none, and no link that leads nowhere."""
    if not os.path.lexists(file):
        return None
    try:
        return read_regular(file, MOST_BYTES, follow=True).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _foreign(file: Path, text: str | None) -> str:
    """Returns why a file must not be changed; empty if it may be."""
    if file.parent.is_symlink():
        return "its folder is a link"
    if file.is_symlink():
        return "it is a link"
    if text is None or is_untouched(file.parent.name, text):
        return ""
    return "it was edited since it was installed" if has_mark(text) else "signoff did not write it"


def _write(file: Path, text: str) -> None:
    """Replaces a file as a whole: an agent may be reading it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_name(f".{file.name}.{os.urandom(6).hex()}")
    try:
        with scratch.open("x", encoding="utf-8", newline="\n") as out:
            out.write(text)
        scratch.replace(file)
    finally:
        scratch.unlink(missing_ok=True)
