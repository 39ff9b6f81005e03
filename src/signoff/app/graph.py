"""Finds the workflow that is to be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from signoff.app.home import expected_home
from signoff.app.notations import compile_context
from signoff.app.settings import load_settings
from signoff.app.targets import resolve
from signoff.core.workflow import Workflow


def find_workflow(
    target: str,
    cwd: Path,
    environment: Mapping[str, str],
    options: Mapping[str, Any] | None = None,
) -> Workflow:
    """Returns the workflow to draw; neither a project nor a goal is needed."""
    home = expected_home(cwd, environment)
    settings = load_settings(home, environment)
    context = replace(compile_context(home, settings, options, cwd=cwd), check_only=True)
    found = resolve(target, cwd=cwd, home=home, places=settings.workflows, context=context)
    return found.workflow
