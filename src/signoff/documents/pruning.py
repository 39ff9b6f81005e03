"""Takes wrong values out of a document, to see what else is wrong with it."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

Place = tuple[str | int, ...]


def without_paths(raw: dict[str, Any], paths: Iterable[Place]) -> dict[str, Any]:
    """Returns a copy in which, for each path, the nearest key that can be left out is left out."""
    rest = copy.deepcopy(raw)
    # All are found before any is taken out, or the second of two would take out too much.
    for holder, key in [found for path in paths if (found := _nearest_key(rest, path))]:
        holder.pop(key, None)
    return rest


def _nearest_key(node: Any, path: Place) -> tuple[dict[str, Any], str] | None:
    found = None
    for part in path:
        if isinstance(node, dict) and part in node:
            found = (node, str(part))
            node = node[part]
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        else:
            break
    return found
