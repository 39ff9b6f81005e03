from typing import Any

import pytest

from signoff.contracts.checkpoint import (
    OWNERS,
    RESERVED,
    AmbiguousName,
    checkpoint_of,
    named_update,
    result_names,
)
from signoff.contracts.model import WorkflowStep

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


# A step's result belongs to that step: no other step can replace or hide it.


CODE = WorkflowStep("code", command=["true"])
MORE = WorkflowStep("more", command=["true"])
FREE = WorkflowStep("free", prompt="Write.")
OTHER = WorkflowStep("other", prompt="Judge.")
STRICT = WorkflowStep(
    "strict", prompt="Write.", schema={"type": "object", "properties": {"notes": {}}}
)
STEPS = {step.name: step for step in (CODE, MORE, FREE, OTHER, STRICT)}


def after(*results: tuple[str, Any], params: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns the state after steps returned results, one after the other."""
    state: dict[str, Any] = {}
    for step, result in results:
        state |= named_update(state, {step: result}, STEPS, params)
    return state


def test_a_key_of_one_step_can_be_read_by_its_name_and_has_its_latest_value() -> None:
    """Loops return the same key again and again."""
    names = result_names(after(("code", {"n": 1}), ("free", {"text": "a"}), ("code", {"n": 2})))

    assert dict(names) == {"n": 2, "text": "a"}
    assert (len(names), "n" in names, names.get("x")) == (2, True, None)


@pytest.mark.parametrize("order", [1, -1])
def test_a_key_that_two_steps_return_cannot_be_read_by_its_name(order: int) -> None:
    """Any choice between them would be a guess, and a worker could make use of it."""
    results = [("code", {"n": 1, "own": 1}), ("more", {"n": 2})][::order]
    names = result_names(after(*results))

    assert dict(names) == {"own": 1}
    for read in (lambda: names["n"], lambda: names.get("n"), lambda: "n" in names):
        with pytest.raises(AmbiguousName, match=r"results\.(code|more)\.n or results\."):
            read()


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("declared", ["code", "strict"])
def test_what_a_worker_sends_neither_replaces_nor_hides_a_declared_key(
    declared: str, order: int
) -> None:
    """It does not even matter who comes first."""
    results = [(declared, {"notes": "real"}), ("free", {"notes": "fake"})][::order]

    assert dict(result_names(after(*results))) == {"notes": "real"}


def test_two_workers_that_send_the_same_key_do_not_speak_for_each_other() -> None:
    """A reviewer's decision is not another's."""
    names = result_names(after(("free", {"decision": "yes"}), ("other", {"decision": "no"})))

    with pytest.raises(AmbiguousName, match="free, other"):
        names["decision"]


def test_keys_that_the_schema_of_a_prompt_does_not_list_have_no_name() -> None:
    """The release notes could be declared complete by whoever wrote them."""
    state = after(("code", {"changes": ["#12"]}), ("strict", {"notes": "n", "changes": []}))

    assert dict(result_names(state)) == {"changes": ["#12"], "notes": "n"}
    assert dict(result_names(after(("strict", {"missing": []})))) == {}


def test_no_key_has_the_name_of_a_parameter_or_of_the_runs_own_data() -> None:
    """`{{version}}` stays what the user passed."""
    taken = dict.fromkeys((*RESERVED, "version", "_completed", "_owners", "__proto__"), "fake")

    state = after(("code", taken), params=("version",))

    assert state == {}


def test_owners_are_stored_only_when_they_change() -> None:
    """A long loop must not store them in every round."""
    state = after(("code", {"n": 1}))

    assert named_update(state, {"code": {"n": 2}}, STEPS, ()) == {"n": 2}
    assert OWNERS in state
