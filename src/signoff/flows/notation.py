"""Review flows, as a notation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.notation import Notation, Option, OptionKind


def recognize(content: Mapping[str, Any]) -> bool:
    """Tells whether a file lists steps as review flows do."""
    return "workflow" in content


NOTATION = Notation(
    name="flows",
    label="review flow",
    compile="signoff.flows.compile_file:compile_file",
    recognize=recognize,
    options=(
        Option(
            "goal",
            "--goal",
            "The goal of a flow: a goal.yaml, or a text file with just the goal.",
            OptionKind.FILE,
            "FILE",
        ),
        Option(
            "allow_scripts",
            "--allow-scripts",
            "Allow scripts named in flow sources.",
            OptionKind.FLAG,
        ),
    ),
    layout="signoff.flows.layout:FlowLayout",
    report="signoff.flows.report:report",
    plan="signoff.flows.plan:plan",
    definition_files=("goal.yaml", "constraints"),
)
