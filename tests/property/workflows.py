"""Random workflows, and a run of one driven by nothing but the rules and the fold.

The driver takes the role of the runner: it observes a fact (here: picks one), asks
`decide`, records the event that follows, and applies it. It performs nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, assert_never

from hypothesis import strategies as st

from signoff.core import events as ev
from signoff.core import transitions as rules
from signoff.core.delta import Append, Delta, diff
from signoff.core.errors import UnmappedOutcome
from signoff.core.fold import evolve
from signoff.core.outcome import End, Outcome, Status
from signoff.core.run_state import RunState, Stage
from signoff.core.step import Condition, Edge, Gate, GateOption, StepDef
from signoff.core.stop_reason import ErrorInfo, StepDecided
from signoff.core.workflow import Workflow

CONDITION = Condition("c", lambda ctx: True, "not so")
RETURNED = [Outcome.OK, Outcome.FAIL, Outcome.SKIP, Outcome.ITERATE]


Choose = Callable[[int], int]
"""Picks one of so many."""


def choices() -> st.SearchStrategy[Choose]:
    """Picks in a repeating order, which drives more loops to their bounds."""
    return st.binary(min_size=1, max_size=60).map(_in_turn)


def _in_turn(order: bytes) -> Choose:
    turn = cycle(order)
    return lambda count: next(turn) % count


def workflows() -> st.SearchStrategy[Workflow]:
    """Any valid workflow of a few steps: lines, diamonds, self loops, nested loops, gates."""
    return choices().map(_workflow)


def _workflow(choose: Choose) -> Workflow:
    ids = [f"s{number}" for number in range(1 + choose(5))]
    steps = [_step(choose, ids, number) for number in range(len(ids))]
    return Workflow("flow", *steps, max_iterations=[None, None, 1, 3][choose(4)])


def _step(choose: Choose, ids: list[str], number: int) -> StepDef:
    # One outcome leads on to the next step, so every step can be reached and the last one ends.
    onward = ids[number + 1] if number + 1 < len(ids) else None
    main = [Outcome.FAIL, Outcome.ITERATE, Outcome.DEFAULT][choose(3)]
    gate = [None, None, _gate(choose, ids)][choose(3)]
    others = [o for o in Outcome if o is not main and (gate is None or o is not Outcome.OK)]
    extra = {others[choose(len(others))]: _edge(choose, ids) for _ in range(choose(4))}
    return StepDef(
        ids[number],
        next={**extra, main: onward},
        on_error=[None, ids[choose(len(ids))]][choose(2)],
        preconditions=[(), (CONDITION,)][choose(2)],
        postconditions=[(), (CONDITION,)][choose(2)],
        retries=choose(3),
        gate=gate,
    )


def _gate(choose: Choose, ids: list[str]) -> Gate:
    return Gate("?", [GateOption(str(n), _edge(choose, ids)) for n in range(1 + choose(3))])


def _edge(choose: Choose, ids: list[str]) -> Edge:
    # Twice as many ways to a step as to an end, or runs would be over too soon to go wrong.
    targets = [*ids, *ids, None, *End][: 2 * len(ids) + 1 + choose(len(End) + 1)]
    return Edge(
        targets[choose(len(targets))],
        bound=[None, 1, 2, 3][choose(4)],
        starts_iteration=choose(3) == 0,
        on_limit="ask" if choose(2) else "end",
        resets=choose(2) == 0,
        grants_iteration=choose(4) == 0,
    )


@dataclass
class Drive:
    """One run, driven as far as it goes."""

    workflow: Workflow
    choose: Choose
    patience: int = 8
    """How often a human answers before stopping the run."""
    events: list[ev.Event] = field(default_factory=list)
    state: RunState = field(default_factory=RunState)
    script: list[tuple[rules.Fact, dict[str, Any]]] = field(default_factory=list)
    """What handlers, checks and humans did, in order, with what each handler returned."""
    asked: int = 0
    chosen: rules.Chosen | None = None
    """The choice at the gate; it remains valid after the limit of its edge was lifted."""
    outcome: Outcome | None = None
    update: dict[str, Any] = field(default_factory=dict)
    delta: Delta = field(default_factory=dict)

    def steps(self) -> Iterator[rules.Decision]:
        """Yields every decision until the run has ended."""
        self.record(ev.RunStarted("flow", "digest", self.workflow.entry_point, {}))
        stage: Stage | None = Stage.ENTER
        while stage is not None:
            observed = self._is_observed(stage)
            fact = self._fact(stage)
            if observed:
                self.script.append((fact, self.update))
            try:
                decision = rules.decide(self._position(stage), fact)
            except UnmappedOutcome as error:
                decision = rules.Finish(Status.FAILED, StepDecided(str(error)))
            stage = self._act(decision, stage)
            yield decision

    def record(self, event: ev.Event) -> None:
        event.at = float(len(self.events))
        self.events.append(event)
        evolve(self.state, event)

    def _is_observed(self, stage: Stage) -> bool:
        """Whether the next decision needs a fact, from a condition or a gate."""
        step = self.workflow[self.state.step or ""]
        match stage:
            case Stage.ENTER:
                return bool(step.preconditions)
            case Stage.GATE:
                ok = step.gate is not None and self.outcome is Outcome.OK
                return ok and self.chosen is None
            case _:
                return True

    def _position(self, stage: Stage) -> rules.Position:
        state = self.state
        way = state.pending.way if state.pending else ""
        where = (state.step or "", stage, state.attempt, state.iteration, state.counters)
        return rules.Position(self.workflow, *where, self.outcome, way)

    def _fact(self, stage: Stage) -> rules.Fact:
        step = self.workflow[self.state.step or ""]
        match stage:
            case Stage.ENTER:
                self.outcome, self.delta, self.chosen = None, {}, None
                broken = step.preconditions and self.choose(8) == 0
                return rules.ConditionsBroken("not so") if broken else rules.ConditionsMet()
            case Stage.WORK:
                return self._work()
            case Stage.CHECK:
                return (
                    rules.ConditionsBroken("not so")
                    if self.choose(4) == 0
                    else rules.ConditionsMet()
                )
            case Stage.GATE:
                if step.gate is not None and self._is_observed(stage):
                    option = step.gate.options[self.choose(len(step.gate.options))]
                    self.chosen = rules.Chosen(option.label, "why")
                return self.chosen or rules.ConditionsMet()
            case Stage.ESCALATED:
                offered = rules.answers(self._position(stage))
                self.asked += 1
                patient = self.asked <= self.patience
                return rules.Chosen(offered[self.choose(len(offered))] if patient else rules.STOP)
            case _:
                assert_never(stage)

    def _work(self) -> rules.Fact:
        kind = self.choose(20)
        if kind == 0:
            return rules.Raised(ErrorInfo("ValueError", "boom"))
        if kind == 1:
            return rules.FellShort("too short")
        # Mostly what the step is prepared for; now and then anything at all.
        ways = self.workflow.edges
        mapped = [o for o in RETURNED if kind == 2 or ways.find(self.state.step or "", o)]
        self.outcome = (mapped or RETURNED)[self.choose(len(mapped or RETURNED))]
        self.update = self._update(kind)
        self.delta = diff(self.state.state, self.update)
        return rules.Returned(self.outcome)

    def _update(self, number: int) -> dict[str, Any]:
        log = self.state.state.get("log", [])
        kinds: list[dict[str, Any]] = [
            {},
            {"n": number, "nested": {"n": [number]}},
            {"log": Append([number])},
            {"log": [*log, number, None], "kept": log},
        ]
        return kinds[self.choose(len(kinds))]

    def _act(self, decision: rules.Decision, stage: Stage) -> Stage | None:  # noqa: C901  # a flat list
        match decision:
            case rules.Proceed():
                self._proceed(decision, stage)
                return decision.stage
            case rules.Retry():
                kind = ev.AttemptOpened if decision.by_human else ev.AttemptFailed
                self.record(kind(decision.feedback))
                self.outcome, self.delta, self.chosen = None, {}, None
                return Stage.WORK
            case rules.Wait():
                event = ev.Escalated(decision.problem, decision.edge_key, self.outcome, self.delta)
                self.record(event)
                return Stage.ESCALATED
            case rules.Lift():
                self.record(ev.LimitLifted(decision.edge_key))
                self.record(ev.StepWorked(self.outcome or Outcome.OK, self.delta))
                return Stage.GATE
            case rules.Move():
                edge = decision.edge
                left = (self.outcome or Outcome.FAIL, edge.key, decision.to, self.delta)
                more = (decision.iteration, edge.counted, decision.resets, decision.feedback)
                self.record(ev.StepFinished(*left, *more))
                return Stage.ENTER
            case rules.Finish():
                self._finish(decision)
            case rules.Limit():
                if self.outcome is not None:
                    self.record(ev.StepWorked(self.outcome, self.delta))
                self.record(ev.RunStopped.because(Status.LIMIT, decision.reason))
            case _:
                assert_never(decision)
        return None

    def _proceed(self, proceed: rules.Proceed, stage: Stage) -> None:
        if proceed.stage is Stage.GATE:
            self.record(ev.StepWorked(self.outcome or Outcome.OK, self.delta))
        elif stage is Stage.ENTER and self._is_observed(stage):
            self.record(ev.StepBegun())

    def _finish(self, finish: rules.Finish) -> None:
        if finish.edge is not None:
            left = (self.outcome or Outcome.FAIL, finish.edge.key, None, self.delta)
            self.record(ev.StepFinished(*left, self.state.iteration, finish.edge.counted))
        self.record(ev.RunStopped.because(finish.status, finish.reason))
