"""Where the steps of the library's skills lead, by hand and in runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Outcome, Status
from signoff.core.workflow import Workflow
from signoff.runtime.sub_agents import AgentRole
from signoff.skills.library.refactor import ROUNDS
from signoff.skills.qr import QRGate
from tests.tables import table
from tests.unit.skills.library.skill_runs import FAIL, PASS, reported, run_skill
from tests.unit.skills.test_library import SKILLS

READ = ["scope", "context", "inspect", "prove"]
INCIDENT = ["challenge", "response", "actions", "write"]
TESTS = ["subject", "behaviors", "cases", "levels", "write", "stable"]
MEASURED = ["goal", "cases", "baseline"]
CHANGED = ["diagnose", "revise", "trial"]


@table(
    ("skill", "step", "params", "following"),
    [
        ("code_review", "inspect", {"coverage": "partial", "iteration": 4}, "inspect"),
        ("code_review", "inspect", {"coverage": "partial", "iteration": 5}, "prove"),
        ("code_review", "inspect", {"coverage": "complete"}, "prove"),
        ("code_review", "prove", {"mode": "quick"}, "report"),
        ("code_review", "prove", {"mode": "full"}, "verify"),
        ("codebase_analysis", "deepen", {"confidence": "low"}, "deepen"),
        ("codebase_analysis", "deepen", {"confidence": "high"}, "verify"),
        ("decision_critic", "answer", {"confidence": "low", "iteration": 4}, "answer"),
        ("decision_critic", "answer", {"confidence": "low", "iteration": 5}, "alternatives"),
        ("decision_critic", "answer", {"confidence": "certain"}, "alternatives"),
        ("deepthink", "refine", {"confidence": "low"}, "refine"),
        ("deepthink", "refine", {"confidence": "certain"}, "answer"),
        ("doc_sync", "check", {"coverage": "partial"}, "check"),
        ("doc_sync", "check", {"coverage": "partial", "iteration": 5}, "missing"),
        ("incident_review", "conditions", {"confidence": "medium"}, "conditions"),
        ("incident_review", "conditions", {"confidence": "high"}, "challenge"),
        ("incoherence", "collect", {"coverage": "started"}, "collect"),
        ("incoherence", "collect", {"coverage": "complete"}, "compare"),
        ("planner", "explore", {"confidence": "low"}, "explore"),
        ("planner", "explore", {"confidence": "high"}, "decide"),
        ("problem_analysis", "reproduce", {"reproduction": "sometimes"}, "reproduce"),
        ("problem_analysis", "reproduce", {"reproduction": "always"}, "boundary"),
        (
            "problem_analysis",
            "reproduce",
            {"reproduction": "not_reproduced", "iteration": 5},
            "boundary",
        ),
        ("problem_analysis", "investigate", {"confidence": "high"}, "cause"),
        ("refactor", "baseline", {"baseline": "gaps"}, "baseline"),
        ("refactor", "baseline", {"baseline": "green"}, "findings"),
        ("refactor", "apply", {"progress": "reverted"}, "apply"),
        ("refactor", "apply", {"progress": "done"}, "compare"),
        ("refactor", "apply", {"iteration": ROUNDS - 1}, "apply"),
        ("refactor", "apply", {"iteration": ROUNDS}, "compare"),
        ("test_designer", "behaviors", {"coverage": "started"}, "behaviors"),
        ("test_designer", "behaviors", {"coverage": "complete"}, "cases"),
    ],
)
def test_a_report_decides_what_follows(
    skill: str, step: str, params: dict[str, Any], following: str
) -> None:
    """Work that is half done is continued, unless its rounds are used up."""
    assert SKILLS[skill].run(step, params).next == following


def test_the_task_is_carried_to_every_step() -> None:
    """Every step of a skill is about the same decision."""
    command = SKILLS["decision_critic"].run("structure", task="Move to Postgres").next_command

    assert command is not None
    assert dict(command.params) == {"task": "Move to Postgres"}


@table(
    ("skill", "step", "phase", "fix", "following", "again"),
    [
        ("planner", "review_design", "plan-design", "fix_design", "detail", "review_design"),
        ("planner", "review_code", "plan-code", "fix_code", "documents", "review_code"),
        ("planner", "review_docs", "plan-docs", "fix_docs", "hand_over", "review_docs"),
        ("refactor", "review_design", "refactor-design", "fix_design", "apply", "review_design"),
        # Code that was fixed after a review is compared with the old one again.
        ("refactor", "review_code", "refactor-code", "fix_code", "report", "compare"),
    ],
)
def test_each_part_is_reviewed_until_it_passes(
    skill: str, step: str, phase: str, fix: str, following: str, again: str
) -> None:
    """No part may be built on one that failed its review."""
    workflow = SKILLS[skill]
    handler = workflow[step].handler

    assert isinstance(handler, QRGate)
    assert (handler.phase, handler.agent) == (phase, AgentRole.QUALITY_REVIEWER)
    commands = workflow.run(step).next_commands
    assert {outcome: each and each.step for outcome, each in commands.items()} == {
        Outcome.OK: following,
        Outcome.FAIL: fix,
    }
    assert workflow.run(fix).next == again
    assert f"qr-{phase}.json" in workflow[fix].instructions


@table(
    ("skill", "replies", "params", "steps"),
    {
        "a check changes nothing": (
            "doc_sync",
            {"decide": [reported()]},
            {"mode": "check"},
            ["scope", "claims", "check", "missing", "decide", "report"],
        ),
        "every edit is checked like the claim that it replaces": (
            "doc_sync",
            {"check": [reported(coverage=each) for each in ("started", "partial", "complete")]},
            {},
            ["scope", "claims", *["check"] * 3, "missing", "decide", "edit", "recheck", "report"],
        ),
        "the mode that a run is started with counts although the worker does not report it": (
            "code_review",
            {"prove": [reported()]},
            {"mode": "quick"},
            [*READ, "report"],
        ),
        "objections are settled before the review is written": (
            "code_review",
            {"verify": [FAIL, PASS]},
            {},
            [*READ, "verify", "rework", "verify", "report"],
        ),
        "actions are derived only after the explanation was challenged": (
            "incident_review",
            {"conditions": [reported(confidence=each) for each in ("low", "high")]},
            {},
            ["incident", "timeline", *["conditions"] * 2, *INCIDENT, "examine", "handover"],
        ),
        "an incident is handed over only after its review passed": (
            "incident_review",
            {"examine": [FAIL, PASS]},
            {},
            [
                *("incident", "timeline", "conditions"),
                *(*INCIDENT, "examine", "revise", "examine", "handover"),
            ],
        ),
        "an unnoticed break leads to stronger tests and more breaks": (
            "test_designer",
            {"break": [FAIL, FAIL, PASS]},
            {},
            [*TESTS, *["break", "strengthen"] * 2, "break", "report"],
        ),
        "a prompt is measured before it is changed": (
            "prompt_engineer",
            {},
            {},
            [*MEASURED, *CHANGED, "deliver"],
        ),
        "a failed trial is explained before the next change": (
            "prompt_engineer",
            {"trial": [FAIL, PASS]},
            {},
            [*MEASURED, *CHANGED, *CHANGED, "deliver"],
        ),
    },
)
async def test_a_run_goes_through_these_steps(
    skill: str,
    replies: Mapping[str, list[Any]],
    params: dict[str, str],
    steps: list[str],
    tmp_path: Path,
) -> None:
    """What a failed check found is in front of the agent that corrects it."""
    run = await run_skill(SKILLS[skill], replies, state_dir=str(tmp_path), **params)

    assert run.steps == steps
    assert run.result.status is Status.COMPLETED
    failed = [place for place, step in enumerate(steps) if replies.get(step, [None])[0] == FAIL]
    assert all(FAIL["notes"] in run.prompts[place + 1] for place in failed[:1])


@pytest.mark.parametrize(
    ("skill", "step", "times"),
    [
        ("code_review", "verify", 3),
        ("incident_review", "examine", 4),
        ("prompt_engineer", "trial", 4),
        ("test_designer", "break", 4),
    ],
)
async def test_work_that_never_passes_is_a_humans_decision(
    skill: str, step: str, times: int, tmp_path: Path
) -> None:
    """Two agents could argue forever, at the user's expense."""
    workflow: Workflow = SKILLS[skill]

    run = await run_skill(workflow, {step: [FAIL]}, state_dir=str(tmp_path))

    assert run.result.status is Status.WAITING
    assert run.steps.count(step) == times
    assert [*workflow.steps][-1] not in run.steps
