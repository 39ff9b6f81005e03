"""The entry points of installed packages: what they add to signoff, by group and name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache


def entry_points(group: str) -> Mapping[str, str]:
    """Returns the import paths that packages register under `signoff.<group>`, by name."""
    return _search(group, tuple(sys.path))


@lru_cache(maxsize=64)
def _search(group: str, _path: tuple[str, ...]) -> Mapping[str, str]:
    # Looking through every installed package takes a while, so it is done on first use, and once
    # for each import path.
    from importlib import metadata

    return {point.name: point.value for point in metadata.entry_points(group=f"signoff.{group}")}


def package_summary(group: str, name: str) -> str:
    """Returns what the package that registers a name says about itself; empty if nothing."""
    from importlib import metadata

    for point in metadata.entry_points(group=f"signoff.{group}", name=name):
        if point.dist is not None and "Summary" in point.dist.metadata:
            return point.dist.metadata["Summary"]
    return ""
