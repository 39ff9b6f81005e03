"""Reads a flow file into a workflow: the flow, its goal, its constraints, checked together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signoff.core.workflow import Workflow
from signoff.flows.compile import compile_flow
from signoff.flows.flow import BUILT_IN_AGENTS, Flow

__all__ = ["read_notation"]


def read_notation(
    path: Path,
    *,
    root: Path,
    home: Path | None = None,
    options: Mapping[str, Any] | None = None,
    agents: Mapping[str, Mapping[str, Any]] | None = None,
) -> Workflow:
    """Returns the workflow a YAML file describes; raises `InvalidWorkflow` with every problem."""
    raise NotImplementedError
