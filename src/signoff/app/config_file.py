"""Reads a settings file."""

from __future__ import annotations

from signoff.app.config_schema import check
from signoff.app.setting_layers import Layer
from signoff.documents.yaml_text import newer_version, read_yaml
from signoff.errors import Problem

VERSION = 1
"""The form of settings files this program reads."""


def read_config(text: str, name: str, problems: list[Problem]) -> Layer:
    """Returns what a settings file sets; every mistake goes to `problems`, with its line."""
    document = read_yaml(text, name, problems)
    if document is None or document.content is None:
        return {}
    if not isinstance(document.content, dict):
        problems.append(Problem(f"{name}:1", "is not a mapping of `key: value` settings"))
        return {}
    newer = newer_version(document, VERSION)
    if newer is not None:
        # Its other keys may be right in that version, so nothing else is said about it.
        problems.append(newer)
        return {}
    mistakes: list[Problem] = []
    layer = check(document.content, document.at, mistakes, strict=True)
    problems.extend(sorted(mistakes, key=lambda problem: int(problem.where.rpartition(":")[2])))
    return layer
