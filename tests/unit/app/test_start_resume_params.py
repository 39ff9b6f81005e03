"""Tests of `resume` with corrected parameters."""

from pathlib import Path

import pytest

from signoff.app.project import Project
from signoff.app.start import resume, start
from signoff.core.outcome import Status
from signoff.errors import InvalidParams, UsageError

FLOW = """
from signoff import Outcome, StepDef, Workflow

def first(ctx, topic: str):
    return Outcome.OK, {"topic": topic}

def second(ctx, words: int = 0):
    if words < 1:
        raise ValueError("no words")
    return Outcome.OK, {"words": words}

WORKFLOW = Workflow(
    "two",
    StepDef("first", handler=first, next={Outcome.OK: "second"}),
    StepDef("second", handler=second, next={Outcome.OK: None}),
)
"""


@pytest.fixture
async def failed(project: Project, tmp_path: Path) -> Project:
    """A run whose second step failed because of its parameter."""
    (tmp_path / "flow.py").write_text(FLOW)
    result = await start(project, project.find("flow.py"), {"topic": "sea"}, name="one")
    assert result.status is Status.FAILED
    return project


async def test_a_parameter_that_only_unfinished_steps_use_is_corrected(failed: Project) -> None:
    """A typo in a late parameter need not cost everything that was done before."""
    result = await resume(failed, "one", params={"words": "3"})

    assert result.status is Status.COMPLETED, result
    assert result.state == {"topic": "sea", "words": 3}


async def test_a_parameter_that_a_finished_step_used_is_refused(failed: Project) -> None:
    """Half of the work would be about one topic and half about another."""
    with pytest.raises(UsageError, match=r"'topic' cannot be corrected.*\(first\)"):
        await resume(failed, "one", params={"topic": "lake"})


async def test_an_unknown_or_wrong_correction_is_refused(failed: Project) -> None:
    """The run stays as it was."""
    head = failed.run("one").head

    for params in ({"wrods": "3"}, {"words": "many"}):
        with pytest.raises(InvalidParams):
            await resume(failed, "one", params=params)

    assert failed.run("one").head == head
