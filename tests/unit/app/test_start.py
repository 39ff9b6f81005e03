from pathlib import Path

import pytest

from signoff.app.presets import init_project
from signoff.app.start import plan, with_roles
from signoff.core.spend import Limits

FLOW = """
from typing import Annotated
from signoff import Arg, Limits, Outcome, StepDef, Workflow

def work(ctx, rounds: Annotated[int, Arg(min=1, max=5)] = 2):
    return Outcome.OK, {"rounds": rounds}

WORKFLOW = Workflow(
    "counts", StepDef("only", handler=work, next={Outcome.OK: None}), limits=Limits(usd=2, calls=9)
)
"""


@pytest.fixture
def flow(tmp_path: Path) -> str:
    (tmp_path / "flow.py").write_text(FLOW)
    return "flow.py"


def test_limits_of_the_command_line_override_the_workflow_and_the_settings(
    tmp_path: Path, flow: str
) -> None:
    """The user who starts the run pays for it."""
    surroundings = environment(tmp_path) | {
        "SIGNOFF_LIMITS_USD": "1",
        "SIGNOFF_LIMITS_TOKENS": "7",
    }

    planned = plan(tmp_path, surroundings, flow, {}, command_line={"limits.calls": "3"})

    assert planned.limits == Limits(usd=2, tokens=7, calls=3)
    assert planned.own_limits == Limits(calls=3)


def environment(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "nothing-here")}


INSTRUCTED = """
from signoff import Outcome, StepDef, Workflow
from signoff.runtime.dispatch import Dispatch

WORKFLOW = Workflow(
    "instructed",
    StepDef("work", actions=["Do it."], next={Outcome.OK: "check"}),
    StepDef("check", handler=Dispatch("critic"), next={Outcome.OK: None, Outcome.FAIL: None}),
    roles={"critic": "absent"},
)
"""
AGENTS = """
agents:
  absent: {kind: command, argv: [no-such-program-anywhere]}
  there: {kind: command, argv: [sh]}
roles: {worker: absent}
"""


def test_the_agents_of_instructions_are_checked_before_a_run_starts(tmp_path: Path) -> None:
    """A procedure of twenty steps must not stop at the last one for want of a program."""
    (tmp_path / ".signoff").mkdir()
    (tmp_path / ".signoff" / "config.yaml").write_text(AGENTS)
    (tmp_path / "flow.py").write_text(INSTRUCTED)
    planned = plan(tmp_path, environment(tmp_path), "flow.py", {})

    assert list(planned.not_ready()) == ["absent"]
    assert list(planned.not_ready({"worker": "there"})) == ["absent"]
    assert planned.not_ready(with_roles({"absent": "there"}, planned.roles)) == {}


def test_the_agents_of_pairs_and_profiles_are_checked_before_a_run_starts(tmp_path: Path) -> None:
    """They are known before the first prompt."""
    (tmp_path / ".signoff" / "profiles").mkdir(parents=True)
    (tmp_path / ".signoff" / "config.yaml").write_text(AGENTS)
    pair = plan(
        tmp_path,
        environment(tmp_path),
        "pair:text",
        {"task": "x", "writer": "there", "reviewers": "absent"},
    )
    init_project(tmp_path, environment(tmp_path), "profile")
    options = {"planner": "there", "generator": "absent"}
    profile = plan(tmp_path, environment(tmp_path), "profile:letter", {}, options=options)

    assert list(pair.not_ready()) == ["absent"]
    assert list(profile.not_ready()) == ["absent"]
