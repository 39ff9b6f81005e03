from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from signoff import (
    AgentRole,
    Condition,
    Dispatch,
    Edge,
    End,
    Gate,
    GateOption,
    Limits,
    Outcome,
    StepContext,
    StepDef,
    Workflow,
)
from signoff.core.digest import digest, text_digest
from signoff.core.errors import NotSerialisable
from signoff.core.workflow import describe
from tests.tables import table


def handler(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    return Outcome.OK, {}


def other_handler(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    return Outcome.OK, {}


STEP = StepDef(
    "draft",
    "Draft it",
    actions=["write"],
    handler=handler,
    next={Outcome.FAIL: None},
    preconditions=[Condition("brief", lambda ctx: True, "no brief")],
    gate=Gate("Ship?", [GateOption("yes", None), GateOption("no", End.REJECTED)], ["draft"]),
)
DISPATCHED = replace(STEP, handler=Dispatch(AgentRole.DEVELOPER, "a.b", {"n": 1}))

CHANGES: dict[str, Callable[[], Workflow]] = {
    "name": lambda: Workflow("other", STEP),
    "notation": lambda: Workflow("flow", STEP, notation="flows"),
    "max_iterations": lambda: Workflow("flow", STEP, max_iterations=3),
    "limits": lambda: Workflow("flow", STEP, limits=Limits(usd=1)),
    "source": lambda: Workflow("flow", STEP, source={"goal": "x"}),
    "one more step": lambda: Workflow(
        "flow", replace(STEP, next={Outcome.FAIL: "b"}), StepDef("b", next={Outcome.FAIL: None})
    ),
    **{
        name: lambda change=change: Workflow("flow", replace(STEP, **change))  # type: ignore[misc]  # a default pins the loop's value
        for name, change in {
            "title": {"title": "Write it"},
            "actions": {"actions": ["write more"]},
            "handler": {"handler": other_handler},
            "no handler": {"handler": None},
            "target": {"next": {Outcome.FAIL: End.FAILED}},
            "outcome": {"next": {Outcome.SKIP: None}},
            "bound": {"next": {Outcome.FAIL: Edge(None, bound=2)}},
            "starts_iteration": {"next": {Outcome.FAIL: Edge(None, starts_iteration=True)}},
            "on_limit": {"next": {Outcome.FAIL: Edge(None, on_limit="ask")}},
            "resets": {"next": {Outcome.FAIL: Edge(None, resets=True)}},
            "on_error": {"on_error": "draft"},
            "phase": {"phase": "one"},
            "no preconditions": {"preconditions": ()},
            "condition's name": {"preconditions": [replace(STEP.preconditions[0], name="x")]},
            "condition's error": {"preconditions": [replace(STEP.preconditions[0], error="x")]},
            "condition's check": {
                "preconditions": [replace(STEP.preconditions[0], check=lambda ctx: False)]
            },
            "postcondition": {"postconditions": STEP.preconditions},
            "retries": {"retries": 5},
            "timeout": {"timeout": 5.0},
            "step limits": {"limits": Limits(calls=1)},
            "edits": {"edits": True},
            "no gate": {"gate": None},
            "gate's prompt": {"gate": Gate("Really?", STEP.gate.options, ["draft"])},  # type: ignore[union-attr]  # it has one
            "gate's context": {"gate": Gate("Ship?", STEP.gate.options, ["other"])},  # type: ignore[union-attr]  # it has one
            "gate's options": {"gate": Gate("Ship?", [GateOption("yes", None)], ["draft"])},
            "gate's input": {
                "gate": Gate(
                    "Ship?",
                    [GateOption("yes", None), GateOption("no", End.REJECTED, requires_input=True)],
                    ["draft"],
                )
            },
            "dispatch": {"handler": DISPATCHED.handler},
            "dispatch agent": {"handler": Dispatch(AgentRole.ARCHITECT, "a.b", {"n": 1})},
            "dispatch script": {"handler": Dispatch(AgentRole.DEVELOPER, "a.c", {"n": 1})},
            "dispatch variables": {"handler": Dispatch(AgentRole.DEVELOPER, "a.b", {"n": 2})},
            "dispatch form": {"handler": Dispatch(AgentRole.DEVELOPER, "a.b", {"n": 1}, True)},
        }.items()
    },
}


@table("changed", CHANGES)
def test_anything_a_run_depends_on_changes_the_digest(changed: Callable[[], Workflow]) -> None:
    """A run would silently continue with other rules than it was started with."""
    assert changed().digest != Workflow("flow", STEP).digest


def test_every_change_gives_a_digest_of_its_own() -> None:
    """Two different changes that look alike would hide one behind the other."""
    digests = [changed().digest for changed in CHANGES.values()]

    assert len(set(digests)) == len(digests)


def test_the_same_definition_built_twice_has_one_digest() -> None:
    """Every process that loads the workflow must be able to resume its runs."""
    assert Workflow("flow", STEP).digest == Workflow("flow", STEP, description="words").digest


def test_a_description_is_plain_data_without_code() -> None:
    """It is stored with the run, and code may hold secrets."""

    def make(key: str) -> Any:
        return lambda ctx: (Outcome.OK, {"key": key})

    flow = Workflow("flow", replace(STEP, handler=make("secret-key")))

    described = describe(flow)

    assert digest(described) == flow.digest
    assert "secret-key" not in str(described)
    assert "lambda" in described["steps"][0]["handler"]


def test_the_digest_of_a_value_does_not_depend_on_the_order_of_its_keys() -> None:
    """The same request asked again must be recognised."""
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": [1, 2], "a": 1})
    assert digest([1, 2]) != digest([2, 1])


@pytest.mark.parametrize(
    "value", [{"path": PurePosixPath("x")}, {1}, {1: 1, "1": 1}], ids=["path", "set", "mixed keys"]
)
def test_a_value_without_a_digest_is_refused_with_what_would_do(value: Any) -> None:
    """`ctx.ask(..., workspace=Path(...))` must say what is wrong with it."""
    with pytest.raises(NotSerialisable, match="use strings"):
        digest(value)


def test_a_text_with_half_a_character_has_a_digest() -> None:
    """Replies cut off within an emoji are stored like any other."""
    assert text_digest("\ud83d") != text_digest("")
