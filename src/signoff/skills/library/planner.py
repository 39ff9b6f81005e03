"""Plans a change before it is made: read code, decide, divide into milestones, have it reviewed.

The plan is in `plan.json` of the state directory, what it rests on in `context.json`. Reviewers
check the plan three times: its design, its code-level detail and its documentation.
"""

from __future__ import annotations

from functools import partial

from signoff.skills import Outcome, QRGate
from signoff.skills.parts import SkillTexts, until_confident

OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

# The plan and its context are files, so every step may edit, except the one that hands them over.
plan_step = partial(TEXTS.step, edits=True)

WORKFLOW = TEXTS.workflow(
    plan_step("start", {OK: "explore"}),
    plan_step("explore", {OK: "decide", ITERATE: "explore"}, until_confident),
    plan_step("decide", {OK: "approach"}),
    plan_step("approach", {OK: "milestones"}),
    plan_step("milestones", {OK: "review_design"}),
    plan_step("review_design", {OK: "detail", FAIL: "fix_design"}, QRGate(phase="plan-design")),
    plan_step("fix_design", {OK: "review_design"}),
    plan_step("detail", {OK: "review_code"}),
    plan_step("review_code", {OK: "documents", FAIL: "fix_code"}, QRGate(phase="plan-code")),
    plan_step("fix_code", {OK: "review_code"}),
    plan_step("documents", {OK: "review_docs"}),
    plan_step("review_docs", {OK: "hand_over", FAIL: "fix_docs"}, QRGate(phase="plan-docs")),
    plan_step("fix_docs", {OK: "review_docs"}),
    TEXTS.step("hand_over", {OK: None}),
)
