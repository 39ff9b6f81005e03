"""Brings documents in line with what the code does, statement by statement."""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.coverage import COVERAGE_SCALE, CoverageLevel, repeat_until_covered
from signoff.skills.parts import NOTES_IN_REPLY, TASK, Iteration
from signoff.skills.state import STATE_DIR, state_directory
from signoff.skills.texts import texts_beside

DESCRIPTION = """\
Correct documents by what the code does, statement by statement. Use it after a change or before
a release. Do not use it to write new documents, or when it is open which side is right
(incoherence)."""

TEXTS = texts_beside(__file__)

Mode = Annotated[str, Arg("check only reports, fix also edits", choices=("check", "fix"))]


def check(
    ctx: StepContext, coverage: CoverageLevel = "started", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the check until every claim has a verdict."""
    return repeat_until_covered(ctx, coverage, iteration)


def decide(_ctx: StepContext, mode: Mode = "fix") -> tuple[Outcome, dict[str, Any]]:
    """Leads to the edits, or past them if documents are only checked."""
    return (Outcome.SKIP if mode == "check" else Outcome.OK), {}


OK = Outcome.OK

WORKFLOW = Workflow(
    "doc-sync",
    StepDef("scope", "List the documents", [TEXTS["scope"], NOTES_IN_REPLY], next={OK: "claims"}),
    StepDef(
        "claims", "Collect what they claim", [TEXTS["claims"], NOTES_IN_REPLY], next={OK: "check"}
    ),
    StepDef(
        "check",
        "Check each claim against the code",
        [TEXTS["check"], COVERAGE_SCALE, NOTES_IN_REPLY],
        check,
        {OK: "missing", Outcome.ITERATE: "check"},
    ),
    StepDef(
        "missing",
        "Find what is not documented",
        [TEXTS["missing"], NOTES_IN_REPLY],
        next={OK: "decide"},
    ),
    StepDef(
        "decide",
        "Decide which side is wrong",
        [TEXTS["decide"], NOTES_IN_REPLY],
        decide,
        {OK: "edit", Outcome.SKIP: "report"},
    ),
    StepDef(
        "edit",
        "Correct the documents",
        [TEXTS["edit"], NOTES_IN_REPLY],
        next={OK: "recheck"},
        edits=True,
    ),
    StepDef(
        "recheck", "Check the corrections", [TEXTS["recheck"], NOTES_IN_REPLY], next={OK: "report"}
    ),
    StepDef("report", "Report", [TEXTS["report"], NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("doc-sync", {"claims.md": f"{TEXTS['skeleton']}\n"}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
