import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings

from signoff.core import events as ev
from signoff.core import transitions as rules
from signoff.core.codec import decode
from signoff.core.context import StepContext
from signoff.core.errors import StepFailed
from signoff.core.fold import fold, state_from_json
from signoff.core.outcome import Outcome, Status
from signoff.core.run_state import RunState
from signoff.core.step import Condition, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock
from tests.property.workflows import Choose, Drive, choices, workflows


class Puppets:
    """Handlers, checks and humans that repeat the facts of a simulated run."""

    def __init__(self, script: list[tuple[rules.Fact, dict[str, Any]]]) -> None:
        self._script = iter(script)

    def next(self) -> tuple[rules.Fact, dict[str, Any]]:
        return next(self._script)

    def left(self) -> Iterator[Any]:
        return self._script

    def handle(self, ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        fact, update = self.next()
        match fact:
            case rules.Returned(outcome=outcome):
                return outcome, update
            case rules.FellShort(problem=problem):
                raise StepFailed(problem)
            case _:
                assert isinstance(fact, rules.Raised)
                raise RuntimeError(fact.problem)

    def check(self, ctx: StepContext) -> bool:
        fact, _ = self.next()
        assert isinstance(fact, rules.ConditionsMet | rules.ConditionsBroken)
        return isinstance(fact, rules.ConditionsMet)

    def answer(self) -> str:
        fact, _ = self.next()
        assert isinstance(fact, rules.Chosen)
        return json.dumps({"value": fact.label, "text": fact.text})

    def play(self, workflow: Workflow) -> Workflow:
        steps = [self._step(step) for step in workflow.steps.values()]
        return Workflow(workflow.name, *steps, max_iterations=workflow.max_iterations)

    def _step(self, step: StepDef) -> StepDef:
        condition = Condition("c", self.check, "not so")
        return replace(
            step,
            handler=self.handle,
            preconditions=[condition for _ in step.preconditions],
            postconditions=[condition for _ in step.postconditions],
        )


async def performed(workflow: Workflow, puppets: Puppets) -> RunState:
    store = MemoryStore()
    played = puppets.play(workflow)
    async with Engine(store, clock=FrozenClock()) as engine:
        result = await engine.start(played, name="run")
        while result.status is Status.WAITING:
            (item,) = result.inbox
            store.answer(item.id, puppets.answer(), "ann", 1.0, item.digest)
            result = await engine.resume("run", played)
    stored = store.load("run")
    start = None if stored.checkpoint is None else decode(stored.checkpoint, store.blob)
    rows = [decode(row.events, store.blob) for row in stored.tail]
    events = [ev.from_json(data) for row in rows for data in row]
    return fold(events, state_from_json(start) if start else None)


@settings(max_examples=200)
@given(workflows(), choices())
def test_the_engine_follows_the_transition_rules_exactly(
    workflow: Workflow, choose: Choose
) -> None:
    """The transition rules are tested on their own; the engine must not add others."""
    thought = Drive(workflow, choose)
    for _ in thought.steps():
        pass
    puppets = Puppets(thought.script)

    state = asyncio.run(performed(workflow, puppets))

    assert list(puppets.left()) == []
    assert standing(state) == standing(thought.state)


def standing(state: RunState) -> dict[str, Any]:
    """Returns the comparable part of a run's state: no times, messages or internal notes."""
    own = ("_error", "_gate")
    return {
        "status": state.status,
        "step": state.step,
        "stage": state.stage,
        "visits": state.visits,
        "iteration": state.iteration,
        "attempt": state.attempt,
        "counters": state.counters,
        "outcome": state.outcome,
        "state": {key: value for key, value in state.state.items() if key not in own},
        "pending": state.pending and (state.pending.outcome, state.pending.delta),
    }
