"""The process the crash harness kills: loads a story and tells it, until a write is the last."""

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
"""The number of a write that does not come."""


def main(source: str, name: str, directory: str, at: str, when: str) -> None:
    """Tells the story on a store that kills this process at a write."""
    story = getattr(_loaded(Path(source)), name)
    inner = SqliteStore(Path(directory) / DATABASE)
    store = CrashingStore(inner, at=int(at), when=cast("When", when))
    try:
        asyncio.run(story(store, EffectLog(directory)))
    finally:
        store.close()


def _loaded(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = module_from_spec(spec)
    # Known under its name, because dataclasses and handlers look their module up.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(*sys.argv[1:])
