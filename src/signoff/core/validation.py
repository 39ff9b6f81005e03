"""Checks a whole definition, one small function per rule; all problems are reported.

First the fields of each step are checked, because authors may not use a type checker. A field
with a wrong value gets a harmless one in its place, so that the rules about the graph can still
be checked and their problems appear in the same report. The rules about handlers are in
`callables`.

An end such as `End.REJECTED` is a string too, so rules about step ids always look at
`_step_target` and never at the raw edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from signoff.core.callables import agreement_problems, handler_problems
from signoff.core.edges import as_edge, declared_edges
from signoff.core.outcome import End, Outcome
from signoff.core.spend import AMOUNT, Limits
from signoff.core.step import Condition, Edge, Gate, GateOption, HandlerObject, StepDef
from signoff.errors import Problem

Steps = Sequence[StepDef]

_BOUND = "a whole number from 1"


def problems_of(
    name: str,
    steps: Sequence[Any],
    entry: str,
    max_iterations: int | None = None,
    limits: Limits | None = None,
) -> list[Problem]:
    """Returns every problem of a definition; empty means it can run."""
    workflow = _Fields("workflow")
    workflow.check("name", name, _is_name(name), "a short name")
    workflow.check("max_iterations", max_iterations, _is_bound(max_iterations), _BOUND)
    workflow.limits(limits if limits is not None else Limits())
    found = workflow.problems
    if not steps:
        found.append(Problem("workflow", "has no steps", "give it at least one StepDef"))
    sound_steps = []
    for position, step in enumerate(steps, 1):
        if not isinstance(step, StepDef):
            found.append(Problem(f"step {position}", f"is {step!r:.80}", "a StepDef(...)"))
            continue
        where = f"step {step.id!r}" if _is_name(step.id) else f"step {position}"
        fields = _Fields(where, str(step.id))
        sound = fields.sound_step(step, f"step {position}")
        sound_steps.append(sound)
        found += fields.problems
        # `is`, because an id of the wrong type may not even be comparable.
        if entry is step.id:
            entry = sound.id
    return found + [problem for rule in _RULES for problem in rule(sound_steps, entry)]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_bound(value: Any) -> bool:
    return value is None or _is_whole(value, 1)


def _is_timeout(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and value > 0)


_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "id": (_is_name, "a short name"),
    "title": (lambda value: isinstance(value, str), "a text"),
    "phase": (lambda value: isinstance(value, str), "a text"),
    "on_error": (lambda value: value is None or isinstance(value, str), "a step's id"),
    "retries": (lambda value: _is_whole(value, 0), "a whole number from 0"),
    "timeout": (_is_timeout, "seconds, more than 0"),
    "next": (lambda value: isinstance(value, Mapping), "a dict such as {Outcome.OK: 'publish'}"),
    "gate": (lambda value: value is None or isinstance(value, Gate), "a Gate(prompt, options)"),
    "edits": (lambda value: isinstance(value, bool), "True or False"),
}
"""The fields of a step whose value is right or wrong as a whole, and what is valid there."""


class _Fields:
    """Checks the fields of a step or of the workflow itself, and collects their problems."""

    def __init__(self, where: str, step: str = "") -> None:
        self.problems: list[Problem] = []
        self._where, self._step = where, step

    def check(self, name: str, value: Any, fits: bool, remedy: str) -> bool:
        """Adds a problem with a value that does not fit, and returns whether it fits."""
        if not fits:
            what = f"{name} is {value!r:.80}"
            self.problems.append(Problem(self._where, what, remedy, self._step))
        return fits

    def limits(self, limits: Any) -> Limits:
        if not self.check("limits", limits, isinstance(limits, Limits), "Limits(...)"):
            return Limits()
        for name, value in limits.invalid().items():
            self.check(f"limits.{name}", value, False, AMOUNT)
        return limits  # type: ignore[no-any-return]  # checked above

    def sound_step(self, step: StepDef, name: str) -> StepDef:
        """Returns the step with the right types in every field; `name` is for one without an id."""
        wrong = [
            field
            for field, (fits, remedy) in _FIELDS.items()
            if not self.check(field, getattr(step, field), fits(getattr(step, field)), remedy)
        ]
        if wrong:
            stand_in = StepDef(name, next={Outcome.OK: None})
            step = replace(step, **{field: getattr(stand_in, field) for field in wrong})
        sound: dict[str, Any] = {
            "actions": self._listed("actions", step.actions, object, "a list of instructions"),
            "limits": self.limits(step.limits),
            "preconditions": self._conditions("preconditions", step.preconditions),
            "postconditions": self._conditions("postconditions", step.postconditions),
            "next": {
                key: self._target(f"next[{getattr(key, 'value', key)!r}]", target)
                for key, target in step.next.items()
            },
            "gate": self._gate(step.gate) if step.gate is not None else None,
        }
        # A copy takes as long as all checks, and nearly every step is sound.
        return replace(step, **sound) if self.problems else step

    def _conditions(self, name: str, value: Any) -> list[Condition]:
        listed = self._listed(name, value, Condition, "a list of Condition(name, check, error)")
        for each in listed:
            name = f"the check of {each.name!r}"
            self.check(name, each.check, callable(each.check), "a function")
        return [each for each in listed if callable(each.check)]

    def _gate(self, gate: Gate) -> Gate:
        has_prompt = isinstance(gate.prompt, str) and bool(gate.prompt.strip())
        self.check("the gate's prompt", gate.prompt, has_prompt, "what the human is asked")
        options = self._listed("the gate's options", gate.options, GateOption, "a list of options")
        # If all options are wrong, the gate must not also be reported as one without options.
        if not options and gate.options:
            options = [GateOption("stand-in", None)]
        context = self._listed("the gate's context", gate.context, str, "a list of names")
        return Gate(str(gate.prompt), [self._option(o) for o in options], context)

    def _option(self, option: GateOption) -> GateOption:
        named = _is_name(option.label)
        self.check("the label of a gate's option", option.label, named, "a short name")
        target = self._target(f"option {option.label!r}", option.next)
        return GateOption(str(option.label), target, bool(option.requires_input))

    def _target(self, name: str, target: Any) -> Edge:
        edge = as_edge(target)
        leads = edge.to is None or isinstance(edge.to, str)
        if not self.check(name, edge.to, leads, "a step's id, an End, an Edge, or None"):
            edge = replace(edge, to=None)
        if not self.check(f"the bound of {name}", edge.bound, _is_bound(edge.bound), _BOUND):
            edge = replace(edge, bound=None)
        valid = edge.on_limit in ("end", "ask")
        self.check(f"on_limit of {name}", edge.on_limit, valid, "'end' or 'ask'")
        return edge

    def _listed(self, name: str, value: Any, kind: type, remedy: str) -> list[Any]:
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        entries = value if self.check(name, value, is_list, remedy) else []
        for each in entries:
            self.check(f"an entry of {name}", each, isinstance(each, kind), remedy)
        return [each for each in entries if isinstance(each, kind)]


def _ids_are_unique(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step_id, count in Counter(str(s.id) for s in steps).items():
        if count > 1:
            what = f"is defined {count} times"
            yield Problem(f"step {step_id!r}", what, "give each its own id", step_id)


def _entry_exists(steps: Steps, entry: str) -> Iterator[Problem]:
    ids = [s.id for s in steps]
    if steps and entry not in ids:
        yield Problem(
            "entry_point", f"{entry!r} is not a step", f"one of: {', '.join(map(str, ids))}"
        )


def _outcome_keys_are_right(steps: Steps, _entry: str) -> Iterator[Problem]:
    outcomes = ", ".join(f"Outcome.{o.name}" for o in Outcome)
    for step in steps:
        for key in step.next:
            if not isinstance(key, Outcome):
                yield _of(step, f"next has the key {key!r}", f"use one of: {outcomes}")


def _targets_exist(steps: Steps, _entry: str) -> Iterator[Problem]:
    ids = {s.id for s in steps}
    listed = ", ".join(sorted(map(str, ids)))
    for step in steps:
        for name, edge in declared_edges(step):
            target = _step_target(edge)
            if target is not None and target not in ids:
                yield _of(step, f"{name} leads to the unknown step {target!r}", f"steps: {listed}")


def _some_step_ends(steps: Steps, _entry: str) -> Iterator[Problem]:
    ends = any(_step_target(e) is None for s in steps for _, e in declared_edges(s))
    if steps and not ends:
        yield Problem("workflow", "never ends", "let at least one outcome lead to None")


def _every_step_leads_on(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        if not step.next and step.gate is None:
            yield _of(step, "leads nowhere", "give it next={Outcome.OK: None} to end there")


def _all_are_reachable(steps: Steps, entry: str) -> Iterator[Problem]:
    # Steps with the same id are reported by another rule; here their targets are joined.
    targets: dict[str, set[str | None]] = {}
    for step in steps:
        targets.setdefault(step.id, set()).update(_step_target(e) for _, e in declared_edges(step))
    if entry not in list(targets):
        return
    seen, todo = {entry}, [entry]
    while todo:
        fresh = {t for t in targets.get(todo.pop(), ()) if t is not None} - seen
        seen |= fresh
        todo.extend(fresh)
    for step in steps:
        if step.id not in seen:
            yield _of(step, f"cannot be reached from {entry!r}", "lead an outcome to it")


def _handlers_can_be_called(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        yield from (_of(step, what, remedy) for what, remedy in handler_problems(step.handler))


def _verdicts_lead_on(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        if not isinstance(step.handler, HandlerObject) or Outcome.DEFAULT in step.next:
            continue
        for outcome in step.handler.outcomes:
            if outcome not in step.next and not (step.gate is not None and outcome is Outcome.OK):
                what = f"can end with Outcome.{outcome.name}, which leads nowhere"
                yield _of(step, what, f"add Outcome.{outcome.name} to next, with a step or None")


def _titled_steps_are_done(steps: Steps, _entry: str) -> Iterator[Problem]:
    # In a run nobody would be given such a step, and it would count as done.
    for step in steps:
        has_work = step.handler is not None or step.gate is not None
        if step.title and not has_work and not any(str(each).strip() for each in step.actions):
            yield _of(step, "has a title, but no instructions", "give it actions=[...]")


def _gates_decide(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        if step.gate is None:
            continue
        labels = [o.label for o in step.gate.options]
        if not labels:
            yield _of(step, "gate has no options", "give it at least one GateOption")
        if len(set(labels)) != len(labels):
            yield _of(step, "gate has two options of one label", "give each its own label")
        if Outcome.OK in step.next:
            what = "has a gate, so next[Outcome.OK] is never taken"
            yield _of(step, what, "let an option of the gate lead there")


_RULES: tuple[Callable[[Steps, str], Iterator[Problem]], ...] = (
    _ids_are_unique,
    _entry_exists,
    _outcome_keys_are_right,
    _targets_exist,
    _some_step_ends,
    _every_step_leads_on,
    _all_are_reachable,
    _handlers_can_be_called,
    _verdicts_lead_on,
    _titled_steps_are_done,
    lambda steps, _entry: agreement_problems(steps),
    _gates_decide,
)


def _step_target(edge: Edge) -> str | None:
    return None if edge.to is None or isinstance(edge.to, End) else edge.to


def _of(step: StepDef, what: str, remedy: str) -> Problem:
    return Problem(f"step {step.id!r}", what, remedy, str(step.id))
