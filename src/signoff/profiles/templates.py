"""Templates of prompts: a profile fills in what it knows, the engine fills in the rest."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from signoff.documents import templates

ENGINE_VARIABLES = ("STANDARDS", "PLAN", "CODE", "REVIEW", "FEEDBACK")
"""The variables that only the engine has values for."""


def render_template(
    path: str | PathLike[str],
    variables: Mapping[str, Any],
    templates_root: str | PathLike[str] | None = None,
) -> str:
    """Renders a template like `signoff.documents.templates`; the engine's variables stay in it."""
    return templates.render_template(path, variables, templates_root, keep=ENGINE_VARIABLES)


def fill_engine_variables(prompt: str, values: Mapping[str, str]) -> str:
    """Returns a profile's prompt with the engine's variables filled in; empty without a value."""
    return templates.fill(prompt, {name: values.get(name, "") for name in ENGINE_VARIABLES})
