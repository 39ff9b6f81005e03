"""File edits of scripted and recorded agents: recording them, and applying them again.

Contents are text, or base64 for binary files; None means a deleted file.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path

from signoff.agents import workspace as ws
from signoff.core.effects import AgentRequest
from signoff.errors import AgentRefused, UnsafePath
from signoff.runtime.paths import safe_path

Contents = Mapping[str, str | Mapping[str, str] | None]
"""By path within the workspace; `{"base64": ...}` is a binary file."""


def apply(files: Contents, request: AgentRequest) -> dict[str, str]:
    """Edits files as an agent would and returns the diffs; refuses paths outside the workspace."""
    if not files:
        return {}
    if not request.edit or request.workspace is None:
        raise AgentRefused("the answer edits files, and the request does not allow it")
    folder = Path(request.workspace)
    try:
        paths = {name: safe_path(folder, name) for name in files}
    except UnsafePath as error:
        raise AgentRefused(f"the edit leaves the workspace: {error}") from error
    before = ws.take_snapshot(folder)
    for name, content in files.items():
        _write(paths[name], content)
    return ws.changes_since(before).inside


def watch(request: AgentRequest) -> Callable[[], dict[str, str | dict[str, str] | None]]:
    """Takes a snapshot of the workspace; the function it returns lists the changes since."""
    if not request.edit or request.workspace is None:
        return dict
    folder = Path(request.workspace)
    before = ws.take_snapshot(folder)
    return lambda: {name: _read(folder / name) for name in ws.changes_since(before).inside}


def _write(path: Path, content: str | Mapping[str, str] | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
        return
    data = content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _read(path: Path) -> str | dict[str, str] | None:
    if not path.is_file():
        return None
    data = path.read_bytes()
    text = ws.text_of(data)
    return {"base64": base64.b64encode(data).decode("ascii")} if text is None else text
