"""Files an agent that is only played changes: what it did, and doing it again.

Contents are texts, or base64 for what is no text; None stands for a file that was deleted.
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
"""By path within the workspace; `{"base64": ...}` is a file that is no text."""


def apply(files: Contents, request: AgentRequest) -> dict[str, str]:
    """Changes files as an agent would and returns the diffs; refuses what it may not touch."""
    if not files:
        return {}
    folder = editable(request)
    try:
        places = {name: safe_path(folder, name) for name in files}
    except UnsafePath as error:
        raise AgentRefused(f"the edit leaves the workspace: {error}") from error
    before = ws.take(folder)
    for name, content in files.items():
        _put(places[name], content)
    return ws.compare(before).inside


def watch(request: AgentRequest) -> Callable[[], dict[str, str | dict[str, str] | None]]:
    """Looks at the workspace now; the function returned tells what was changed since."""
    if not request.edit or request.workspace is None:
        return dict
    folder = Path(request.workspace)
    before = ws.take(folder)
    return lambda: {name: _content(folder / name) for name in ws.compare(before).inside}


def editable(request: AgentRequest) -> Path:
    """Returns the folder that may be edited; raises `AgentRefused` when there is none."""
    if not request.edit or request.workspace is None:
        raise AgentRefused("files were to be edited, and the request does not allow it")
    return Path(request.workspace)


def _put(place: Path, content: str | Mapping[str, str] | None) -> None:
    if content is None:
        place.unlink(missing_ok=True)
        return
    data = content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)


def _content(place: Path) -> str | dict[str, str] | None:
    if not place.is_file():
        return None
    data = place.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}
    return text if "\0" not in text else {"base64": base64.b64encode(data).decode("ascii")}
