"""Designs and writes tests for behavior, and shows that each of them can fail."""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.coverage import COVERAGE_SCALE, CoverageLevel, repeat_until_covered
from signoff.skills.parts import NOTES_IN_REPLY, TASK, Iteration
from signoff.skills.state import STATE_DIR, state_directory
from signoff.skills.texts import texts_beside

DESCRIPTION = """\
Design and write tests for what code promises, and show that each can fail. Use it for behavior
that no test guards. Do not use it for a coverage figure, load tests, or code that is thrown
away."""

TEXTS = texts_beside(__file__)


def behaviors(
    ctx: StepContext, coverage: CoverageLevel = "started", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the listing until every source is used up."""
    return repeat_until_covered(ctx, coverage, iteration)


OK = Outcome.OK

WORKFLOW = Workflow(
    "test-designer",
    StepDef(
        "subject", "Name what is tested", [TEXTS["subject"], NOTES_IN_REPLY], next={OK: "behaviors"}
    ),
    StepDef(
        "behaviors",
        "List what it promises",
        [TEXTS["behaviors"], COVERAGE_SCALE, NOTES_IN_REPLY],
        behaviors,
        {OK: "cases", Outcome.ITERATE: "behaviors"},
    ),
    StepDef("cases", "Choose the cases", [TEXTS["cases"], NOTES_IN_REPLY], next={OK: "levels"}),
    StepDef(
        "levels",
        "Decide how each case is tested",
        [TEXTS["levels"], NOTES_IN_REPLY],
        next={OK: "write"},
    ),
    StepDef(
        "write",
        "Write the tests",
        [TEXTS["write"], NOTES_IN_REPLY],
        next={OK: "stable"},
        edits=True,
    ),
    StepDef(
        "stable", "Make sure they are stable", [TEXTS["stable"], NOTES_IN_REPLY], next={OK: "break"}
    ),
    StepDef(
        "break",
        "Have the code broken",
        [TEXTS["break"]],
        Dispatch(AgentRole.QUALITY_REVIEWER),
        {OK: "report", Outcome.FAIL: "strengthen"},
        edits=True,
    ),
    StepDef(
        "strengthen",
        "Close the gaps",
        [TEXTS["strengthen"], NOTES_IN_REPLY],
        next={OK: Edge("break", bound=3, on_limit="ask")},
        edits=True,
    ),
    StepDef("report", "Report", [TEXTS["report"], NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("test-designer", {"behaviors.md": f"{TEXTS['skeleton']}\n"}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
