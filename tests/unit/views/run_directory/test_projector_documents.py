import json
from collections.abc import Mapping
from typing import Any

import pytest

from signoff.core.frozen import FrozenDict
from signoff.core.outcome import Status
from signoff.core.run_state import RunState
from signoff.store.run_layout import Layout, ShownRun
from signoff.views.run_directory.projector import (
    LONGEST_QUOTE,
    ProjectionState,
    log_line,
    quote,
    state_document,
    thread_line,
)

PROJECTION = ProjectionState("one", 0.0, "d" * 64, 3)


def test_a_thread_line_is_one_object_with_a_short_stable_id() -> None:
    """Programs recognize a line they have seen by its id."""
    line = thread_line("run:1:0", 0.0, {"text": "two\nlines", "half": "\ud800"})

    assert line.count(b"\n") == 1
    entry = json.loads(line)
    assert entry["text"] == "two\nlines"
    assert entry["half"] == "\ud800"
    assert len(entry["id"]) == 16
    assert thread_line("run:1:0", 9.0, {})[:30] == line[:30]
    assert thread_line("run:1:1", 0.0, {})[:30] != line[:30]


def test_outside_text_stays_on_its_line_without_control_sequences() -> None:
    """Otherwise a reply could forge log lines or clear the screen of a user who follows the log."""
    line = log_line(0.0, "said\n2023-01-01T00:00:00Z  approved\x1b[2J\u202e")

    expected = b"1970-01-01T00:00:00.000Z  said 2023-01-01T00:00:00Z approved"
    assert line == expected + rb"\u001b[2J\u202e" + b"\n"


def test_a_long_text_is_cut_and_a_short_one_is_whole() -> None:
    """A log is an overview; the complete text is in its own file."""
    assert quote("short") == "short"
    assert quote("x" * 5000) == "x" * LONGEST_QUOTE + "…"


class PhaseLayout(Layout):
    def fields(self, run: ShownRun) -> Mapping[str, Any]:
        return {
            "phase": "error" if run.state.status is Status.FAILED else run.state.step,
            "last_error": run.state.reason,
            "round": run.state.iteration,
            "pending": [form["path"] for form in run.requests],
            "plan": run.state.state_with_pending["plan"],
        }


def test_a_layout_gets_the_status_of_the_run_and_its_open_requests() -> None:
    """A notation shows its own phases, which depend on how the run ended or what it waits for."""
    run = RunState(
        status=Status.FAILED,
        reason="broken",
        step="review",
        iteration=2,
        state=FrozenDict(plan="p"),
    )

    document = state_document(
        ShownRun(run, {}, [{"path": "plan.md"}]), PROJECTION, [7], PhaseLayout(), 3
    )

    assert (document["phase"], document["last_error"], document["round"]) == ("error", "broken", 2)
    assert (document["pending"], document["plan"]) == (["plan.md"], "p")
    assert (document["status"], document["inbox"]) == ("failed", [7])
    assert document["awaiting_human"] is True


@pytest.mark.parametrize("name", ["status", "step", "iteration", "reason", "params", "projection"])
def test_a_field_that_every_notation_has_is_reported(name: str) -> None:
    """It would be lost without a word: programs rely on the common fields, so those win."""

    class Colliding(Layout):
        def fields(self, run: ShownRun) -> Mapping[str, Any]:
            return {name: "mine"}

    with pytest.warns(UserWarning, match=f"Colliding has fields of its own .*: {name};"):
        document = state_document(ShownRun(RunState(), {}), PROJECTION, [], Colliding(), 3)

    assert document[name] != "mine"
