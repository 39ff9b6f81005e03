"""Finds places where documents, code and configuration contradict each other, and settles them."""

from __future__ import annotations

from signoff.skills import AgentRole, Dispatch, Outcome
from signoff.skills.parts import SkillTexts, until_covered

OK, ITERATE = Outcome.OK, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

# Which side is right is the user's decision, so the agent of this step may ask.
SETTLE = Dispatch(AgentRole.GENERAL_PURPOSE, free_form=True, supports_questions=True)

WORKFLOW = TEXTS.workflow(
    TEXTS.step("sources", {OK: "collect"}),
    TEXTS.step("collect", {OK: "compare", ITERATE: "collect"}, until_covered),
    TEXTS.step("compare", {OK: "confirm"}),
    TEXTS.step("confirm", {OK: "options"}),
    TEXTS.step("options", {OK: "settle"}, edits=True),
    TEXTS.step("settle", {OK: "apply"}, SETTLE, edits=True),
    TEXTS.step("apply", {OK: "verify"}, edits=True),
    TEXTS.step("verify", {OK: "report"}),
    TEXTS.step("report", {OK: None}),
)
