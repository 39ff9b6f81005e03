"""Tells which notation a YAML file is written in: a contract workflow, or a review flow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signoff.core.workflow import Workflow

CONTRACT_KEYS = frozenset({"steps", "type", "initial_step", "initialStep"})
"""Any of these at the top of a file without `workflow` makes it a contract."""


def read_notation(
    path: Path,
    *,
    root: Path,
    home: Path | None = None,
    options: Mapping[str, Any] | None = None,
    agents: Mapping[str, Mapping[str, Any]] | None = None,
) -> Workflow:
    """Returns the workflow of a YAML file; raises `InvalidWorkflow` with every problem."""
    if is_contract(path):
        from signoff.contracts.notation import read_notation as read
    else:
        # What cannot be read at all is told there.
        from signoff.flows.notation import read_notation as read
    return read(path, root=root, home=home, options=options, agents=agents)


def is_contract(path: Path) -> bool:
    """Tells whether a file describes a contract workflow; a broken file does not."""
    from signoff.documents.files import read_text
    from signoff.documents.yaml_text import read_yaml

    text = read_text(path, [])
    # Reading YAML takes a while, and most files are no contracts.
    if text is None or not any(key in text for key in CONTRACT_KEYS):
        return False
    document = read_yaml(text, path.name, [])
    content = document.content if document is not None else None
    if not isinstance(content, dict) or "workflow" in content:
        return False
    return not CONTRACT_KEYS.isdisjoint(content)
