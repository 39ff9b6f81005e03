"""Improves a prompt by cases: what it must achieve, where it fails, and whether a change helps."""

from __future__ import annotations

from signoff.core.step import Edge
from signoff.skills import AgentRole, Dispatch, Outcome
from signoff.skills.parts import SkillTexts

OK, FAIL = Outcome.OK, Outcome.FAIL
TEXTS = SkillTexts.beside(__file__)

AGAIN = Edge("diagnose", bound=3, on_limit="ask")

WORKFLOW = TEXTS.workflow(
    TEXTS.step("goal", {OK: "cases"}),
    TEXTS.step("cases", {OK: "baseline"}),
    TEXTS.step("baseline", {OK: "diagnose"}),
    TEXTS.step("diagnose", {OK: "revise"}),
    TEXTS.step("revise", {OK: "trial"}, edits=True),
    TEXTS.step("trial", {OK: "deliver", FAIL: AGAIN}, Dispatch(AgentRole.GENERAL_PURPOSE)),
    TEXTS.step("deliver", {OK: None}, edits=True),
)
