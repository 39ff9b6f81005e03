"""Changes the structure of code without changing what it does, in small verified steps."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from signoff.skills import Arg, Outcome, QRGate, StepContext
from signoff.skills.parts import Result, SkillTexts, repeat_until

OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

ROUNDS = 12
"""Changes that one pass makes at most; more is a plan with milestones."""

BASELINES = ("not_run", "red", "gaps", "green")
PROGRESS = ("not_started", "reverted", "more", "done")

BaselineState = Annotated[str, Arg("whether the behavior is pinned", choices=BASELINES)]
Progress = Annotated[str, Arg("how far the sequence of changes is", choices=PROGRESS)]
Round = Annotated[
    int, Arg("the round of this step; leave it out in a run, which counts", min=1, max=ROUNDS)
]


def baseline(ctx: StepContext, baseline: BaselineState = "not_run", iteration: Round = 1) -> Result:
    """Repeats the work on tests until behavior is pinned."""
    return repeat_until(baseline == "green", ctx, iteration, ROUNDS)


def apply(ctx: StepContext, progress: Progress = "not_started", iteration: Round = 1) -> Result:
    """Repeats, one change at a time, until the sequence is finished."""
    return repeat_until(progress == "done", ctx, iteration, ROUNDS)


edit_step = partial(TEXTS.step, edits=True)

WORKFLOW = TEXTS.workflow(
    edit_step("goal", {OK: "baseline"}),
    edit_step("baseline", {OK: "findings", ITERATE: "baseline"}, baseline),
    edit_step("findings", {OK: "design"}),
    edit_step("design", {OK: "review_design"}),
    edit_step("review_design", {OK: "apply", FAIL: "fix_design"}, QRGate(phase="refactor-design")),
    edit_step("fix_design", {OK: "review_design"}),
    edit_step("apply", {OK: "compare", ITERATE: "apply"}, apply),
    edit_step("compare", {OK: "review_code"}),
    edit_step("review_code", {OK: "report", FAIL: "fix_code"}, QRGate(phase="refactor-code")),
    # A correction can change behavior like any other change, so it is compared again.
    edit_step("fix_code", {OK: "compare"}),
    TEXTS.step("report", {OK: None}),
)
