"""The process that the crash harness kills: imports a story and runs it."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, cast

from signoff.store.sqlite import SqliteStore
from signoff.testing.crashing_store import CrashingStore, When
from signoff.testing.effect_log import EffectLog

DATABASE = "signoff.db"
NEVER = 0
"""Stands for no write: the process is not killed."""


def main(source: str, name: str, directory: str, at: str, when: str) -> None:
    """Runs the story on a store that kills this process at a given write."""
    story = getattr(_import_file(Path(source)), name)
    inner = SqliteStore(Path(directory) / DATABASE)
    store = CrashingStore(inner, at=int(at), when=cast("When", when))
    try:
        asyncio.run(story(store, EffectLog(directory)))
    finally:
        store.close()


def _import_file(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = module_from_spec(spec)
    # Registered because dataclasses and handlers look up their module by its name.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(*sys.argv[1:])
