"""Designs and writes tests for behavior, and shows that each of them can fail."""

from __future__ import annotations

from signoff.core.step import Edge
from signoff.skills import AgentRole, Dispatch, Outcome
from signoff.skills.parts import SkillTexts, until_covered

OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

# Whoever wrote the tests would break the code where the tests look.
BREAK = Dispatch(AgentRole.QUALITY_REVIEWER)

WORKFLOW = TEXTS.workflow(
    TEXTS.step("subject", {OK: "behaviors"}),
    TEXTS.step("behaviors", {OK: "cases", ITERATE: "behaviors"}, until_covered),
    TEXTS.step("cases", {OK: "levels"}),
    TEXTS.step("levels", {OK: "write"}),
    TEXTS.step("write", {OK: "stable"}, edits=True),
    TEXTS.step("stable", {OK: "break"}),
    TEXTS.step("break", {OK: "report", FAIL: "strengthen"}, BREAK, edits=True),
    TEXTS.step("strengthen", {OK: Edge("break", bound=3, on_limit="ask")}, edits=True),
    TEXTS.step("report", {OK: None}),
)
