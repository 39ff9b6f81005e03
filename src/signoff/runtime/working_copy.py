"""Lets an agent work on a copy: texts go into a fresh folder, and come back out of it.

Nothing else is touched, so a call that was lost is simply made again. The folder is the
agent's to ruin: what it deleted is gone, what it turned into a link is not followed.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from signoff.core.effects import AgentRequest, Reply
from signoff.errors import AgentBadOutput, UnsafePath, WriteFailed
from signoff.runtime.paths import safe_path
from signoff.runtime.ports import Agent, Call, FilePort

WORK = "work"
"""The folder of a run that holds its working copies while they are worked on."""

LARGEST_BYTES = 64_000_000
"""A file that grew beyond this is a fault, not an edit."""

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)


async def ask_on_copy(
    agent: Agent, request: AgentRequest, call: Call, files: FilePort | None
) -> Reply:
    """Asks an agent that works on copies of some texts, and returns them with its reply."""
    with _folder(call, files) as folder:
        _lay_out(folder, request.files)
        reply = await agent.ask(
            replace(request, files={}, workspace=str(folder), copied=True), call
        )
        try:
            contents = dict(_collect(folder, request.files)) if request.edit else None
        except AgentBadOutput as error:
            error.usage = reply.usage  # type: ignore[attr-defined]  # read by faults.usage_of
            raise
    return replace(reply, contents=contents)


def check_names(names: Iterable[str]) -> None:
    """Raises `UnsafePath` for a name that would leave the folder of a working copy."""
    for name in names:
        safe_path(Path(WORK), name)


def shown_to_person(files: Mapping[str, str], *, edit: bool) -> list[str]:
    """Returns the texts as a person is given them, and what to send back."""
    parts = [f"----- {name} -----\n{text}" for name, text in files.items()]
    return [*parts, "Answer with the whole new text, and nothing else."] if edit else parts


@contextmanager
def _folder(call: Call, files: FilePort | None) -> Iterator[Path]:
    if files is None:
        with tempfile.TemporaryDirectory(prefix="signoff-") as made:
            yield Path(made).resolve()
        return
    name = _name(call)
    folder = files.folder(call.run, f"{WORK}/{name}-{call.attempt}")
    _clear(folder.parent, f"{name}-")
    try:
        _make(folder)
        yield folder.resolve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _remove_empty(folder.parent)


def _name(call: Call) -> str:
    """Names a copy for people, and by the call's key apart from every other."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", f"{call.step}-{call.effect}").strip("-")
    return f"{plain[:60]}-{call.idempotency_key[:8]}"


def _clear(parent: Path, prefix: str) -> None:
    """Removes what earlier attempts at the same call left when their process died."""
    if parent.is_dir():
        for old in parent.iterdir():
            if old.name.startswith(prefix):
                shutil.rmtree(old, ignore_errors=True)


def _make(folder: Path) -> None:
    """Makes a folder that must be new, and those above it that are missing, for the owner alone."""
    above = [each for each in folder.parents if not each.exists()]
    try:
        for each in reversed(above):
            # One by one: `parents=True` would let everybody look into those.
            each.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise WriteFailed(f"cannot make {folder}: {error.strerror or error}") from error


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return  # another call is at work in there


def _lay_out(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        place = safe_path(folder, name)
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.write_bytes(text.encode("utf-8", "surrogatepass"))
        except OSError as error:
            raise WriteFailed(f"cannot write {place}: {error.strerror or error}") from error


def _collect(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        data = _read(folder, name)
        if data is None:
            continue
        if len(data) > LARGEST_BYTES:
            raise AgentBadOutput(f"the agent left {name} larger than {LARGEST_BYTES:,} bytes")
        try:
            yield name, data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise AgentBadOutput(f"the agent left {name} as something that is no text") from error


def _read(folder: Path, name: str) -> bytes | None:
    """Returns what a plain file holds; None for anything else: a link, a pipe, a folder."""
    try:
        handle = os.open(safe_path(folder, name), os.O_RDONLY | _NOFOLLOW | _NONBLOCK | _BINARY)
    except (OSError, UnsafePath):
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(LARGEST_BYTES + 1)
