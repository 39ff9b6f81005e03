"""What a flow file gets from the settings."""

from pathlib import Path
from typing import Any

import pytest

from signoff.agents.base import KnownAgent
from signoff.documents.source_file import SourceFile
from signoff.errors import InvalidWorkflow
from signoff.flows.compile import compile_file
from signoff.flows.steps.refine import writes_text
from signoff.notation import CompileContext
from signoff.runtime.ports import Capabilities

FLOW = """
goal: Write about the sea.
constraints: {inline: {clear: It is clear.}}
workflow:
  - {step: generate, agent: own}
  - {step: critique}
  - {step: adjudicate, agent: policy}
  - {step: refine, agent: own, loop_to: critique}
"""


@pytest.mark.parametrize("edits", [True, False])
def test_only_an_agent_that_can_edit_files_gets_one(edits: bool, tmp_path: Path) -> None:
    """A program that only answers failed in the refine step, after everything else was paid for."""
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW)
    own = KnownAgent("of a plug-in", declared=lambda: Capabilities(edits_files=edits))

    workflow = compile_file(SourceFile(file), CompileContext(tmp_path, agents={"own": own}))

    handler: Any = workflow.steps["refine"].handler
    assert writes_text(handler.flow, handler.step) is not edits


def test_without_any_project_the_usual_agents_can_do_what_they_declare(tmp_path: Path) -> None:
    """A flow loaded from Python had claude write the whole text again instead of editing it."""
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW.replace("agent: own", "agent: claude"))

    workflow = compile_file(SourceFile(file), CompileContext(tmp_path))

    handler: Any = workflow.steps["refine"].handler
    assert not writes_text(handler.flow, handler.step)


def test_a_check_as_the_agent_of_steps_that_name_none_cannot_write(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW.replace(", agent: own", ""))
    known = {"claude": KnownAgent("x", declared=lambda: Capabilities(deterministic=True))}

    with pytest.raises(InvalidWorkflow, match="'claude' only checks and cannot write"):
        compile_file(SourceFile(file), CompileContext(tmp_path, agents=known))
