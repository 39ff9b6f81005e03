"""Changes the structure of code without changing what it does, in small verified steps."""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.parts import TASK, repeat_until
from signoff.skills.qr.gate import QRGate
from signoff.skills.state import STATE_DIR, state_directory
from signoff.skills.texts import texts_beside

DESCRIPTION = """\
Change the structure of code without changing what it does. Use it when the structure makes
changes hard. Do not use it for features or fixes, to rewrite (planner), or before there are
tests (test-designer)."""

TEXTS = texts_beside(__file__)

NOTES = "refactor.md"

ROUNDS = 12
"""Changes that one pass makes at most; more is a plan with milestones."""

BASELINES = ("not_run", "red", "gaps", "green")
PROGRESS = ("not_started", "reverted", "more", "done")

BaselineState = Annotated[str, Arg("whether the behavior is pinned", choices=BASELINES)]
Progress = Annotated[str, Arg("how far the sequence of changes is", choices=PROGRESS)]
Round = Annotated[
    int, Arg("the round of this step; leave it out in a run, which counts", min=1, max=ROUNDS)
]
Result = tuple[Outcome, dict[str, Any]]


def baseline(ctx: StepContext, baseline: BaselineState = "not_run", iteration: Round = 1) -> Result:
    """Repeats the work on tests until behavior is pinned."""
    return repeat_until(baseline == "green", ctx, iteration, ROUNDS)


def apply(ctx: StepContext, progress: Progress = "not_started", iteration: Round = 1) -> Result:
    """Repeats, one change at a time, until the sequence is finished."""
    return repeat_until(progress == "done", ctx, iteration, ROUNDS)


OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE

WORKFLOW = Workflow(
    "refactor",
    StepDef(
        "goal",
        "State the pain and the boundary",
        [TEXTS["goal"]],
        next={OK: "baseline"},
        edits=True,
    ),
    StepDef(
        "baseline",
        "Pin the behavior",
        [TEXTS["baseline"]],
        baseline,
        {OK: "findings", ITERATE: "baseline"},
        edits=True,
    ),
    StepDef(
        "findings",
        "Find what causes the pain",
        [TEXTS["findings"]],
        next={OK: "design"},
        edits=True,
    ),
    StepDef(
        "design",
        "Compare target structures",
        [TEXTS["design"]],
        next={OK: "review_design"},
        edits=True,
    ),
    StepDef(
        "review_design",
        "Review the design",
        [TEXTS["review-design"]],
        QRGate(phase="refactor-design"),
        {OK: "apply", FAIL: "fix_design"},
        edits=True,
    ),
    StepDef(
        "fix_design",
        "Fix the design",
        [TEXTS["fix-design"]],
        next={OK: "review_design"},
        edits=True,
    ),
    StepDef(
        "apply",
        "Make one change",
        [TEXTS["apply"]],
        apply,
        {OK: "compare", ITERATE: "apply"},
        edits=True,
    ),
    StepDef(
        "compare", "Compare old and new", [TEXTS["compare"]], next={OK: "review_code"}, edits=True
    ),
    StepDef(
        "review_code",
        "Review the result",
        [TEXTS["review-code"]],
        QRGate(phase="refactor-code"),
        {OK: "report", FAIL: "fix_code"},
        edits=True,
    ),
    StepDef("fix_code", "Fix the result", [TEXTS["fix-code"]], next={OK: "compare"}, edits=True),
    StepDef("report", "Report to the user", [TEXTS["report"]], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("refactor", {NOTES: f"{TEXTS['skeleton']}\n"}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
