"""Reviews a change for defects, with evidence for each finding and a second opinion."""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg
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
Review a change (diff, branch, pull request) for defects, with evidence for each finding. Use it
before a merge. Do not use it for style, restructuring (refactor), or comparing documents with
code (doc-sync)."""

TEXTS = texts_beside(__file__)

Mode = Annotated[str, Arg("quick leaves out the second reviewer", choices=("quick", "full"))]


def inspect(
    ctx: StepContext, coverage: CoverageLevel = "started", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the reading until every part was read."""
    return repeat_until_covered(ctx, coverage, iteration)


def prove(_ctx: StepContext, mode: Mode = "full") -> tuple[Outcome, dict[str, Any]]:
    """Leads to the second reviewer, or past it in quick mode."""
    return (Outcome.SKIP if mode == "quick" else Outcome.OK), {}


OK = Outcome.OK

WORKFLOW = Workflow(
    "code-review",
    StepDef("scope", "Pin down the change", [TEXTS["scope"], NOTES_IN_REPLY], next={OK: "context"}),
    StepDef(
        "context",
        "Find what depends on it",
        [TEXTS["context"], NOTES_IN_REPLY],
        next={OK: "inspect"},
    ),
    StepDef(
        "inspect",
        "Read the change for defects",
        [TEXTS["inspect"], COVERAGE_SCALE, NOTES_IN_REPLY],
        inspect,
        {OK: "prove", Outcome.ITERATE: "inspect"},
    ),
    StepDef(
        "prove",
        "Prove or drop each candidate",
        [TEXTS["prove"], NOTES_IN_REPLY],
        prove,
        {OK: "verify", Outcome.SKIP: "report"},
        edits=True,
    ),
    StepDef(
        "verify",
        "Have the findings refuted",
        [TEXTS["verify"]],
        Dispatch(AgentRole.QUALITY_REVIEWER),
        {OK: "report", Outcome.FAIL: "rework"},
    ),
    StepDef(
        "rework",
        "Settle the objections",
        [TEXTS["rework"], NOTES_IN_REPLY],
        next={OK: Edge("verify", bound=2, on_limit="ask")},
        edits=True,
    ),
    StepDef("report", "Write the review", [TEXTS["report"], NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("code-review", {"findings.md": f"{TEXTS['skeleton']}\n"}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
