"""Reviews an incident after it is over: what happened, what made it possible, what to change."""

from __future__ import annotations

from signoff.core.step import Edge
from signoff.skills import AgentRole, Dispatch, Outcome
from signoff.skills.parts import SkillTexts, until_confident

OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

WORKFLOW = TEXTS.workflow(
    TEXTS.step("incident", {OK: "timeline"}),
    TEXTS.step("timeline", {OK: "conditions"}),
    TEXTS.step("conditions", {OK: "challenge", ITERATE: "conditions"}, until_confident),
    TEXTS.step("challenge", {OK: "response"}),
    TEXTS.step("response", {OK: "actions"}),
    TEXTS.step("actions", {OK: "write"}),
    TEXTS.step("write", {OK: "examine"}, edits=True),
    TEXTS.step("examine", {OK: "handover", FAIL: "revise"}, Dispatch(AgentRole.QUALITY_REVIEWER)),
    TEXTS.step("revise", {OK: Edge("examine", bound=3, on_limit="ask")}, edits=True),
    TEXTS.step("handover", {OK: None}),
)
