"""Finds places where documents, code and configuration contradict each other, and settles them."""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.coverage import COVERAGE_SCALE, CoverageLevel, repeat_until_covered
from signoff.skills.parts import NOTES_IN_REPLY, TASK, Iteration
from signoff.skills.state import STATE_DIR, state_directory
from signoff.skills.texts import texts_beside

DESCRIPTION = """\
Find where documents, code, configuration and tests contradict each other, and settle it with
the user. Use it when it is open which side is right. Do not use it when the code is right
(doc-sync)."""

TEXTS = texts_beside(__file__)


def collect(
    ctx: StepContext, coverage: CoverageLevel = "started", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the collection until every topic has its statements."""
    return repeat_until_covered(ctx, coverage, iteration)


OK = Outcome.OK

WORKFLOW = Workflow(
    "incoherence",
    StepDef(
        "sources",
        "List the sources and topics",
        [TEXTS["sources"], NOTES_IN_REPLY],
        next={OK: "collect"},
    ),
    StepDef(
        "collect",
        "Collect what the sources say",
        [TEXTS["collect"], COVERAGE_SCALE, NOTES_IN_REPLY],
        collect,
        {OK: "compare", Outcome.ITERATE: "collect"},
    ),
    StepDef(
        "compare",
        "Find the contradictions",
        [TEXTS["compare"], NOTES_IN_REPLY],
        next={OK: "confirm"},
    ),
    StepDef(
        "confirm",
        "Confirm each contradiction",
        [TEXTS["confirm"], NOTES_IN_REPLY],
        next={OK: "options"},
    ),
    StepDef(
        "options",
        "Prepare the decisions",
        [TEXTS["options"], NOTES_IN_REPLY],
        next={OK: "settle"},
        edits=True,
    ),
    StepDef(
        "settle",
        "Settle them with the user",
        [TEXTS["settle"]],
        Dispatch(AgentRole.GENERAL_PURPOSE, free_form=True, supports_questions=True),
        {OK: "apply"},
        edits=True,
    ),
    StepDef(
        "apply",
        "Make the sources agree",
        [TEXTS["apply"], NOTES_IN_REPLY],
        next={OK: "verify"},
        edits=True,
    ),
    StepDef(
        "verify", "Check that they agree", [TEXTS["verify"], NOTES_IN_REPLY], next={OK: "report"}
    ),
    StepDef("report", "Report", [TEXTS["report"], NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("incoherence", {"contradictions.md": f"{TEXTS['skeleton']}\n"}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
