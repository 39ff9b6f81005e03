"""Improves a prompt by cases: what it must achieve, where it fails, and whether a change helps."""

from __future__ import annotations

from signoff.core.outcome import Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.parts import NOTES_IN_REPLY, TASK
from signoff.skills.state import STATE_DIR, state_directory
from signoff.skills.texts import texts_beside

DESCRIPTION = """\
Improve a prompt for a language model by cases that are measured. Use it for prompts that are
used again and again. Do not use it for one-off questions, or when the model lacks data rather
than words."""

TEXTS = texts_beside(__file__)
FILES = {
    "original.md": "",
    "candidate.md": "",
    "cases.md": f"{TEXTS['cases.md']}\n",
    "checks.md": f"{TEXTS['checks.md']}\n",
    "notes.md": f"{TEXTS['notes.md']}\n",
}
"""The files of the state directory, and how each begins."""

OK = Outcome.OK

WORKFLOW = Workflow(
    "prompt-engineer",
    StepDef(
        "goal",
        "State what the prompt must achieve",
        [TEXTS["goal"], NOTES_IN_REPLY],
        next={OK: "cases"},
    ),
    StepDef("cases", "Write the cases", [TEXTS["cases"], NOTES_IN_REPLY], next={OK: "baseline"}),
    StepDef(
        "baseline",
        "Measure the prompt as it is",
        [TEXTS["baseline"], NOTES_IN_REPLY],
        next={OK: "diagnose"},
    ),
    StepDef(
        "diagnose", "Explain each failure", [TEXTS["diagnose"], NOTES_IN_REPLY], next={OK: "revise"}
    ),
    StepDef(
        "revise",
        "Change what causes the failures",
        [TEXTS["revise"], NOTES_IN_REPLY],
        next={OK: "trial"},
        edits=True,
    ),
    StepDef(
        "trial",
        "Have a fresh agent try it",
        [TEXTS["trial"]],
        Dispatch(AgentRole.GENERAL_PURPOSE),
        {OK: "deliver", Outcome.FAIL: Edge("diagnose", bound=3, on_limit="ask")},
    ),
    StepDef(
        "deliver",
        "Hand the prompt over",
        [TEXTS["deliver"], NOTES_IN_REPLY],
        next={OK: None},
        edits=True,
    ),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("prompt-engineer", FILES),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
