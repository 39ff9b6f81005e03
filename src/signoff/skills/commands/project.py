"""Where skills are found from the current folder, without loading what only runs need."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from signoff.app.home import Home, find_home
from signoff.notation import CompileContext

_SETTING = "workflows"
_VARIABLE = "SIGNOFF_WORKFLOWS"


def context_here() -> CompileContext:
    """Returns what finding skills around the current folder needs: no agents."""
    cwd = Path.cwd()
    home = find_home(cwd, os.environ)

    def trust(definitions: str) -> None:
        from signoff.app.settings import load_settings
        from signoff.app.trust import check_trust

        if home is not None:
            check_trust(home, load_settings(home, os.environ), definitions)

    return CompileContext(
        root=home.root if home is not None else cwd,
        home=home.path if home is not None else None,
        workflows=_searched(home, os.environ),
        agents={},
        trust=trust,
    )


def _searched(home: Home | None, environment: Mapping[str, str]) -> Sequence[str]:
    """Returns the places that the settings name."""
    from signoff.app.settings import load_settings, settings_files

    # Checking the settings takes longer than showing a step, and few of them name places.
    files = settings_files(home, environment)
    if not environment.get(_VARIABLE) and not any(map(_may_name_places, files)):
        return ()
    return load_settings(home, environment).workflows


def _may_name_places(file: Path) -> bool:
    with suppress(OSError):
        return _SETTING.encode() in file.read_bytes()
    return False
