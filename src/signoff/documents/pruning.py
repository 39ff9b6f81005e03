"""Removes invalid values from a document, so that the rest of it can still be checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Path = tuple[str | int, ...]


def without_paths(raw: dict[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """Returns a copy without the innermost existing key of each path."""
    rest: dict[str, Any] = _copied(raw)
    # Find all keys before removing any: once a key is gone, a second path to it would end
    # one level higher and remove too much.
    keys = [entry for path in paths if (entry := _innermost_key(rest, path))]
    for mapping, key in keys:
        mapping.pop(key, None)
    return rest


def _copied(node: Any) -> Any:
    """Returns a copy of the containers; values may be objects that cannot be copied."""
    if isinstance(node, list):
        return [_copied(each) for each in node]
    return {key: _copied(node[key]) for key in node} if isinstance(node, dict) else node


def _innermost_key(node: Any, path: Path) -> tuple[dict[str, Any], str] | None:
    entry = None
    for part in path:
        if isinstance(node, dict) and part in node:
            entry = (node, str(part))
            node = node[part]
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        else:
            break
    return entry
