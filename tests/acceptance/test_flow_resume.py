"""Flows that are killed and resumed, in real processes with stub agents."""

from collections import Counter

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.cli_project import is_alive
from tests.acceptance.flow_project import DRAFT, FINAL, FlowProject, Rule
from tests.patience import wait_until

FOR_EVER: Rule = {"seconds": 600}
TOKENS = 110
"""What each program says it used."""


def story(**slow: Rule) -> list[Rule]:
    """Returns the rules for one iteration and an approval; calls of one step hang."""
    return [
        play.author_writes(**slow.get("generate", {})),
        play.critic_finds("structure", play.issue(), contains=DRAFT),
        play.critics_pass("completeness", agent="codex", **slow.get("critique", {})),
        play.critics_pass(),
        play.judge_decides("REWRITE", bill="Fix it.", contains=DRAFT, **slow.get("adjudicate", {})),
        play.judge_decides("APPROVED"),
        play.editor_replaces(**slow.get("refine", {})),
    ]


@pytest.mark.parametrize("stopped", ["generate", "critique", "adjudicate", "refine"])
def test_a_killed_flow_resumes_and_repeats_no_call(flow_project: FlowProject, stopped: str) -> None:
    """Calls that were answered before the kill were paid for."""
    flow_project.copy_flow("full")
    flow_project.constraints("structure", "completeness", "style", folder=".arena/constraints")
    flow_project.script(*story(**{stopped: FOR_EVER}))
    process = flow_project.start("run", "flow.yaml", "--goal", "goal.yaml", "--name", "one")
    before = {"generate": 1, "critique": 7, "adjudicate": 9, "refine": 10}[stopped]
    wait_until(lambda: len(flow_project.calls) == before)
    wait_until(lambda: settled(flow_project, before))

    process.kill()
    process.wait()
    flow_project.script(*story())
    done = flow_project.call("resume", "one")

    assert done.code == 0, done.err
    assert flow_project.read("final/artifact.md") == FINAL
    times = Counter(flow_project.call_fields("step", "constraint", "agent", "prompt"))
    twice = [call for call, number in times.items() if number > 1]
    assert [call[0] for call in twice] == [stopped]
    (left,) = [call["pid"] for call in flow_project.calls[:before] if waits(call, stopped)]
    assert not is_alive(left)


def waits(call: dict[str, object], stopped: str) -> bool:
    """Returns whether this is the call that hangs."""
    alone = stopped != "critique" or (call["constraint"], call["agent"]) == (
        "completeness",
        "codex",
    )
    return call["step"] == stopped and alone


def settled(flow_project: FlowProject, before: int) -> bool:
    """Returns whether the answers of all other calls have been recorded."""
    return bool(
        flow_project.call("show", "one", "--json").json["spend"]["known_tokens"]
        == TOKENS * (before - 1)
    )
