from typing import Any

from signoff.contracts.checkpoint import checkpoint_of

STATE: dict[str, Any] = {
    "goal": "shorter",
    "metrics": {"delta": 3},
    "_completed": [
        {"step": "plan", "completed_at": "t1", "result": {"goal": "long"}},
        {"step": "write", "completed_at": "t2", "result": {"items": {}}},
        {"step": "plan", "completed_at": "t3", "result": {"goal": "shorter"}},
    ],
    "_items": {
        "0:a": {"status": "completed", "result": 1},
        "1:b": {"status": "failed", "error": "left out by a human"},
    },
    "_gate": {"step": "gate", "option": "More", "input": "shorter"},
    "_backup": "20260301",
}


def test_a_checkpoint_has_the_completed_steps_their_counts_and_their_results() -> None:
    """Commands and conditions use it; the engine's own entries are not part of its data."""
    point = checkpoint_of("run", "book", "write", STATE)

    assert point.completed("plan")
    assert not point.completed("gate")
    assert point.result_of("plan") == {"goal": "shorter"}
    assert point.result_of("gate") is None
    assert point.iteration_counts == {"plan": 2, "write": 1}
    assert point.data == {"goal": "shorter", "metrics": {"delta": 3}}
    assert point.parallel_results["1:b"].status == "failed"
    assert point.gate_decision == {"gate": "gate", "option": "More", "input": "shorter"}


def test_expressions_and_programs_see_data_and_fields_side_by_side() -> None:
    """Authors write both `checkpoint.goal` and `checkpoint.completed`."""
    seen = checkpoint_of("run", "book", "write", STATE).to_json()

    assert seen["goal"] == "shorter"
    assert seen["completed"] == ["plan", "write", "plan"]
    assert seen["results"]["plan"] == {"goal": "shorter"}
    assert seen["gate"]["input"] == "shorter"
    assert seen["iterations"]["plan"] == 2
