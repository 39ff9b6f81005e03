"""Reviews a change for defects, with evidence for each finding and a second opinion."""

from __future__ import annotations

from typing import Annotated

from signoff.core.step import Edge
from signoff.skills import AgentRole, Arg, Dispatch, Outcome, StepContext
from signoff.skills.parts import Result, SkillTexts, until_covered

OK, FAIL, SKIP, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.SKIP, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

Mode = Annotated[str, Arg("quick leaves out the second reviewer", choices=("quick", "full"))]


def prove(_ctx: StepContext, mode: Mode = "full") -> Result:
    """Leads to the second reviewer, or past it in quick mode."""
    return (SKIP if mode == "quick" else OK), {}


WORKFLOW = TEXTS.workflow(
    TEXTS.step("scope", {OK: "context"}),
    TEXTS.step("context", {OK: "inspect"}),
    TEXTS.step("inspect", {OK: "prove", ITERATE: "inspect"}, until_covered),
    TEXTS.step("prove", {OK: "verify", SKIP: "report"}, prove, edits=True),
    TEXTS.step("verify", {OK: "report", FAIL: "rework"}, Dispatch(AgentRole.QUALITY_REVIEWER)),
    TEXTS.step("rework", {OK: Edge("verify", bound=2, on_limit="ask")}, edits=True),
    TEXTS.step("report", {OK: None}),
)
