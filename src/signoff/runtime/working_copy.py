"""Lets an agent work on a copy: texts are written to a new folder and read back from it.

Nothing else is touched, so a call that was lost is simply repeated. The folder is outside the
run's own, and the agent may do anything to it: a file it deleted is left out of the reply, and
one it replaced by a link or a pipe is refused.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from signoff.core.effects import AgentRequest, Reply
from signoff.documents.regular_files import (
    create_private,
    make_private_folder,
    make_private_folders,
    read_regular,
    translate_write_errors,
)
from signoff.errors import AgentBadOutput, UnsafePath
from signoff.runtime.effect_errors import with_usage
from signoff.runtime.paths import safe_path
from signoff.runtime.ports import Agent, Call, FilePort
from signoff.runtime.scratch import scratch_folder

LARGEST_BYTES = 64_000_000
"""A file that grew beyond this is an error, not an edit."""


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
            with_usage(error, reply.usage)
            raise
    return replace(reply, contents=contents)


@contextmanager
def _folder(call: Call, files: FilePort | None) -> Iterator[Path]:
    if files is None:
        with scratch_folder() as scratch:
            yield scratch
        return
    name = _name(call)
    folder = files.working_copies(call.run) / f"{name}-{call.attempt}"
    # Earlier attempts at the same call left theirs if their process died.
    for old in folder.parent.glob(f"{name}-*"):
        _remove(old)
    try:
        _make(folder)
        yield folder.resolve()
    finally:
        _remove(folder)
        for parent in (folder.parent, folder.parent.parent):
            with suppress(OSError):  # Another call may be working in there.
                parent.rmdir()


def _name(call: Call) -> str:
    """Names a copy: readable for humans, and unique by the call's key."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", f"{call.step}-{call.effect}").strip("-")
    return f"{plain[:60]}-{call.idempotency_key[:8]}"


def _remove(folder: Path) -> None:
    """Removes a working copy; of one that became a link, only the link and not its target."""
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _make(folder: Path) -> None:
    """Creates a new folder and its missing parents, readable by the owner only."""
    with translate_write_errors(folder):
        make_private_folders(folder.parent)
        make_private_folder(folder)


def _lay_out(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = safe_path(folder, name)
        with translate_write_errors(path):
            make_private_folders(path.parent)
            with os.fdopen(create_private(path), "wb") as file:
                file.write(text.encode("utf-8", "surrogatepass"))


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
            raise AgentBadOutput(f"the agent left {name} as something that is not text") from error


def _read(folder: Path, name: str) -> bytes | None:
    """Returns the content of a file; None for one that was deleted or became a folder.

    Raises `AgentBadOutput` for anything that is not a regular file in the very folder that was
    created: through a link, any file of the machine would end up in the artifact.
    """
    try:
        # It had no link in it when it was created, so it has been replaced, or a folder above it.
        if folder.resolve() != folder:
            raise AgentBadOutput("the agent replaced the folder of its working copy")
        return read_regular(safe_path(folder, name), LARGEST_BYTES)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except UnsafePath as error:
        raise AgentBadOutput(f"the agent replaced {name} or its folder by a link") from error
    except OSError as error:
        why = error.strerror or error
        raise AgentBadOutput(f"the agent left {name} unreadable: {why}") from error
