import pytest

from signoff.core.outcome import Outcome
from signoff.runtime.dispatch import AgentRole
from signoff.skills.library.refactor import ROUNDS, WORKFLOW
from signoff.skills.qr.gate import QRGate


@pytest.mark.parametrize(
    ("step", "param", "value", "following"),
    [
        ("baseline", "baseline", "not_run", "baseline"),
        ("baseline", "baseline", "red", "baseline"),
        ("baseline", "baseline", "gaps", "baseline"),
        ("baseline", "baseline", "green", "findings"),
        ("apply", "progress", "not_started", "apply"),
        ("apply", "progress", "reverted", "apply"),
        ("apply", "progress", "more", "apply"),
        ("apply", "progress", "done", "compare"),
    ],
)
def test_work_is_repeated_until_it_is_finished(
    step: str, param: str, value: str, following: str
) -> None:
    """Code is changed only behind a safety net, and never left half moved."""
    assert WORKFLOW.run(step, {param: value}).next == following


@pytest.mark.parametrize(("step", "following"), [("baseline", "findings"), ("apply", "compare")])
def test_the_number_of_rounds_is_limited(step: str, following: str) -> None:
    """More changes than that need a plan."""
    assert WORKFLOW.run(step, iteration=ROUNDS - 1).next == step
    assert WORKFLOW.run(step, iteration=ROUNDS).next == following


@pytest.mark.parametrize(
    ("step", "phase", "fix", "following", "again"),
    [
        ("review_design", "refactor-design", "fix_design", "apply", "review_design"),
        ("review_code", "refactor-code", "fix_code", "report", "compare"),
    ],
)
def test_design_and_result_are_reviewed_until_they_pass(
    step: str, phase: str, fix: str, following: str, again: str
) -> None:
    """Code that was fixed after a review is compared with the old one again."""
    handler = WORKFLOW[step].handler

    assert isinstance(handler, QRGate)
    assert (handler.phase, handler.agent) == (phase, AgentRole.QUALITY_REVIEWER)
    commands = WORKFLOW.run(step).next_commands
    assert {outcome: each and each.step for outcome, each in commands.items()} == {
        Outcome.OK: following,
        Outcome.FAIL: fix,
    }
    assert WORKFLOW.run(fix).next == again
    assert f"qr-{phase}.json" in WORKFLOW[fix].instructions
