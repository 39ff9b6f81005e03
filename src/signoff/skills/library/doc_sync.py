"""Brings documents in line with what the code does, statement by statement."""

from __future__ import annotations

from typing import Annotated

from signoff.skills import Arg, Outcome, StepContext
from signoff.skills.parts import Result, SkillTexts, until_covered

OK, SKIP, ITERATE = Outcome.OK, Outcome.SKIP, Outcome.ITERATE
TEXTS = SkillTexts.beside(__file__)

Mode = Annotated[str, Arg("check only reports, fix also edits", choices=("check", "fix"))]


def decide(_ctx: StepContext, mode: Mode = "fix") -> Result:
    """Leads to the edits, or past them if documents are only checked."""
    return (SKIP if mode == "check" else OK), {}


WORKFLOW = TEXTS.workflow(
    TEXTS.step("scope", {OK: "claims"}),
    TEXTS.step("claims", {OK: "check"}),
    TEXTS.step("check", {OK: "missing", ITERATE: "check"}, until_covered),
    TEXTS.step("missing", {OK: "decide"}),
    TEXTS.step("decide", {OK: "edit", SKIP: "report"}, decide),
    TEXTS.step("edit", {OK: "recheck"}, edits=True),
    TEXTS.step("recheck", {OK: "report"}),
    TEXTS.step("report", {OK: None}),
)
