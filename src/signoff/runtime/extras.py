"""Finds the command that installs an extra into the current environment."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from urllib.parse import urlsplit


def install_command(extra: str) -> str:
    """Returns the command that adds an extra to the environment this signoff runs in."""
    import shutil
    from importlib.util import find_spec

    has_pip, has_uv = find_spec("pip") is not None, shutil.which("uv") is not None
    return worded(extra, _origin(), has_pip=has_pip, has_uv=has_uv)


def worded(extra: str, origin: str | None, *, has_pip: bool, has_uv: bool = True) -> str:
    """Returns the same for an `origin` as installers record it (PEP 610); None is an index."""
    # Imported here because it takes longer than all else most commands do.
    from urllib.request import url2pathname

    # Environments created by uv have no pip, and the pip of another one would install there.
    here = shlex.quote(sys.prefix)
    other = f"uv pip install --python {here}" if has_uv else f"pip --python {here} install"
    tool = "pip install" if has_pip else other
    record = json.loads(origin) if origin else {}
    address = urlsplit(record.get("url", ""))
    source = Path(url2pathname(address.path))
    # A checkout or a wheel: the index may not have this version, or none at all.
    if address.scheme != "file" or not source.exists():
        return f"{tool} {shlex.quote(f'signoff[{extra}]')}"
    editable = "-e " if record.get("dir_info", {}).get("editable") else ""
    return f"{tool} {editable}{shlex.quote(f'{source}[{extra}]')}"


def _origin() -> str | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution("signoff").read_text("direct_url.json")
    except PackageNotFoundError:
        return None  # run from a source tree, without an installation
