"""Runs of flows that are killed and resumed, in real processes with programs on PATH."""

from collections import Counter

import pytest

from tests.acceptance.conftest import is_alive
from tests.acceptance.desk import (
    DRAFT,
    FINAL,
    Desk,
    Rule,
    finds,
    issue,
    mends,
    passes,
    rules,
    writes,
)
from tests.patience import wait_until

FOR_EVER: Rule = {"seconds": 600}
TOKENS = 110
"""What each program says it used."""


def story(**slow: Rule) -> list[Rule]:
    """Returns the answers of one round of work and an approval; some of them never come."""
    return [
        writes(**slow.get("generate", {})),
        finds("structure", issue(), contains=DRAFT),
        passes("completeness", agent="codex", **slow.get("critique", {})),
        passes(),
        rules("REWRITE", bill="Mend it.", contains=DRAFT, **slow.get("adjudicate", {})),
        rules("APPROVED"),
        mends(**slow.get("refine", {})),
    ]


@pytest.mark.parametrize("stopped", ["generate", "critique", "adjudicate", "refine"])
def test_a_killed_flow_resumes_and_asks_for_no_answer_twice(desk: Desk, stopped: str) -> None:
    """Power cuts happen in the middle of a step; earlier answers are already paid for."""
    desk.example("full")
    desk.constraints("structure", "completeness", "style", folder=".arena/constraints")
    desk.play(*story(**{stopped: FOR_EVER}))
    process = desk.start("run", "flow.yaml", "--goal", "goal.yaml", "--name", "one")
    before = {"generate": 1, "critique": 7, "adjudicate": 9, "refine": 10}[stopped]
    wait_until(lambda: len(desk.calls) == before)
    wait_until(lambda: settled(desk, before))

    process.kill()
    process.wait()
    desk.play(*story())
    done = desk.here("resume", "one")

    assert done.code == 0, done.err
    assert desk.read("final/artifact.md") == FINAL
    times = Counter(desk.asked("step", "constraint", "agent", "prompt"))
    twice = [call for call, number in times.items() if number > 1]
    assert [call[0] for call in twice] == [stopped]
    (left,) = [call["pid"] for call in desk.calls[:before] if waits(call, stopped)]
    assert not is_alive(left)


def waits(call: dict[str, object], stopped: str) -> bool:
    """Tells whether this is the call that never ends by itself."""
    alone = stopped != "critique" or (call["constraint"], call["agent"]) == (
        "completeness",
        "codex",
    )
    return call["step"] == stopped and alone


def settled(desk: Desk, before: int) -> bool:
    """Tells whether the answer of every other call has been recorded."""
    return bool(
        desk.here("show", "one", "--json").json["spend"]["known_tokens"] == TOKENS * (before - 1)
    )
