"""What a flow file is told of the settings around it."""

from pathlib import Path
from typing import Any

import pytest

from signoff.documents.source_file import SourceFile
from signoff.flows.compile_file import compile_file
from signoff.notation import CompileContext

FLOW = """
goal: Write about the sea.
constraints: {inline: {clear: It is clear.}}
workflow:
  - {step: generate, agent: own}
  - {step: critique}
  - {step: adjudicate, agent: policy}
  - {step: refine, agent: own, loop_to: critique}
"""


@pytest.mark.parametrize(
    ("settings", "edits"),
    [
        ({"kind": "command", "argv": ["own"]}, False),
        ({"kind": "command", "argv": ["own"], "edits": True}, True),
        ({"kind": "claude"}, True),
        ({"kind": "ollama"}, False),
    ],
)
def test_only_who_may_edit_files_is_given_one(
    settings: dict[str, Any], edits: bool, tmp_path: Path
) -> None:
    """A program that only answers failed in the refine step, with everything before it paid."""
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW)

    workflow = compile_file(SourceFile(file), CompileContext(tmp_path, agents={"own": settings}))

    handler: Any = workflow.steps["refine"].handler
    assert handler.flow.edits("own") is edits


@pytest.mark.parametrize(
    ("agents", "remarks"),
    [
        ({}, ["codex is not on PATH; it works: draft, review"]),
        ({"codex": {"kind": "manual"}}, []),
    ],
    ids=["nobody", "somebody by that name"],
)
def test_a_program_that_is_not_there_is_told_before_anything_is_paid_for(
    agents: dict[str, Any], remarks: list[str], tmp_path: Path
) -> None:
    """The draft was paid for, and only then did the review fail."""
    file = tmp_path / "flow.yaml"
    file.write_text(
        "goal: Write about the sea.\n"
        "constraints: {inline: {clear: It is clear.}}\n"
        "workflow:\n"
        "  - {step: generate, name: draft, agent: codex}\n"
        "  - {step: critique, name: review, agent: codex}\n"
        "  - {step: adjudicate, agent: policy}\n"
    )

    workflow = compile_file(
        SourceFile(file), CompileContext(tmp_path, found=["claude"], agents=agents)
    )

    assert list(workflow.remarks) == remarks
