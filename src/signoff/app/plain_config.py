"""Reads settings files that hold nothing unusual, without loading the schema.

Every command reads the settings, and loading the schema takes longer than most commands need for
everything else. So files with agents, roles and other common keys are read here. Whatever is not
obviously valid is left to the schema, which gives the same settings or reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from signoff.app.setting_layers import Layer, Value
from signoff.documents.yaml_text import Document


def read_plain(document: Document) -> Layer | None:
    """Returns the settings of a file by dotted key; None if it has anything unusual."""
    content = document.content
    if not isinstance(content, dict) or not content.keys() <= _SECTIONS.keys():
        return None
    leaves: dict[tuple[str, ...], Any] = {}
    for key, value in content.items():
        found = _SECTIONS[key](value)
        if found is None:
            return None
        leaves |= {(key, *path): each for path, each in found.items()}
    return {".".join(path): Value(value, document.at(path), path) for path, value in leaves.items()}


_Leaves = dict[tuple[str, ...], Any]


def _version(value: Any) -> _Leaves | None:
    return {} if type(value) is int and value == 1 else None


def _text(value: Any) -> _Leaves | None:
    return {(): value} if _is_word(value) else None


def _texts(value: Any) -> _Leaves | None:
    texts = isinstance(value, list) and all(type(each) is str for each in value)
    return {(): value} if texts else None


def _roles(value: Any) -> _Leaves | None:
    if not isinstance(value, dict) or not all(type(each) is str for each in value.values()):
        return None
    return {(name,): agent for name, agent in value.items()}


def _agents(value: Any) -> _Leaves | None:
    if not isinstance(value, dict):
        return None
    leaves: _Leaves = {}
    for name, options in value.items():
        if not isinstance(options, dict) or not options or not _are_common(options):
            return None
        # The schema lists the keys it knows first, in its own order.
        known = [key for key in _AGENT_KEYS if key in options]
        keys = [*known, *(key for key in options if key not in known)]
        leaves |= {(name, key): options[key] for key in keys}
    return leaves


def _are_common(options: Mapping[str, Any]) -> bool:
    if not options.keys().isdisjoint(_CONVERTED):
        return False
    return all(is_valid(options[key]) for key, is_valid in _AGENT_KEYS.items() if key in options)


def _is_word(value: Any) -> bool:
    return type(value) is str and value != ""


def _is_count(value: Any, *, least: int = 0) -> bool:
    return type(value) is int and value >= least


_AGENT_KEYS: Mapping[str, Callable[[Any], bool]] = {
    "kind": _is_word,
    "concurrency": lambda value: _is_count(value, least=1),
    "retries": _is_count,
    "fallback": _is_word,
}
"""The keys of an agent that are checked; its other options are passed to its kind unchanged."""

_CONVERTED = ("rate", "price")
"""Keys whose values the schema converts."""

_SECTIONS: Mapping[str, Callable[[Any], _Leaves | None]] = {
    "version": _version,
    "agents": _agents,
    "roles": _roles,
    "workflows": _texts,
    "pass_env": _texts,
    "database": _text,
    "log_file": _text,
}
