"""Whether the fields of a step are what their annotations promise.

Definitions come from people who may not use a type checker. What is wrong is reported,
and a harmless stand-in takes its place, so the rules about the graph can still be checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.core.outcome import End, Outcome
from signoff.core.spend import AMOUNT, Limits
from signoff.core.step import Condition, Edge, Gate, GateOption, StepDef
from signoff.errors import Problem

_TARGET = "a step's id, an End, an Edge, or None"


def in_shape(step: StepDef, position: int) -> tuple[StepDef, list[Problem]]:
    """Returns a step whose fields have the right types, and what was wrong with them."""
    checks = _Checks(step, f"step {step.id!r}" if _is_name(step.id) else f"step {position}")
    mended = replace(step, **dict(checks.fields(position)))
    return mended, checks.found


@dataclass
class _Checks:
    """One step, and the problems found in its fields so far."""

    step: StepDef
    where: str
    found: list[Problem] = field(default_factory=list)

    def fields(self, position: int) -> Iterator[tuple[str, Any]]:
        """Yields every field that had to be replaced."""
        step = self.step
        if not _is_name(step.id):
            self._wrong("id", step.id, "a short name")
            yield "id", f"step {position}"
        for name in ("title", "phase"):
            if not isinstance(getattr(step, name), str):
                self._wrong(name, getattr(step, name), "a text")
                yield name, ""
        yield "actions", self._listed("actions", step.actions, object, "a list of instructions")
        if step.on_error is not None and not isinstance(step.on_error, str):
            self._wrong("on_error", step.on_error, "a step's id")
            yield "on_error", None
        yield from self._limits()
        for name in ("preconditions", "postconditions"):
            yield name, self._conditions(name, getattr(step, name))
        yield from self._numbers()
        yield "next", self._next()
        yield "gate", self._gate()

    def _limits(self) -> Iterator[tuple[str, Any]]:
        limits: Any = self.step.limits
        if not isinstance(limits, Limits):
            self._wrong("limits", limits, "Limits(...)")
            yield "limits", Limits()
            return
        for name, value in limits.invalid().items():
            self._wrong(f"limits.{name}", value, AMOUNT)

    def _numbers(self) -> Iterator[tuple[str, Any]]:
        if not _is_whole(self.step.retries, 0):
            self._wrong("retries", self.step.retries, "a whole number from 0")
            yield "retries", 0
        timeout: Any = self.step.timeout
        if timeout is not None and not (_is_number(timeout) and timeout > 0):
            self._wrong("timeout", timeout, "seconds, more than 0")
            yield "timeout", None

    def _conditions(self, name: str, value: Any) -> list[Any]:
        listed = self._listed(name, value, Condition, "a list of Condition(name, check, error)")
        for condition in listed:
            if not callable(condition.check):
                self._wrong(f"the check of {condition.name!r}", condition.check, "a function")
        return [condition for condition in listed if callable(condition.check)]

    def _next(self) -> dict[Any, Any]:
        if not isinstance(self.step.next, Mapping):
            self._wrong("next", self.step.next, "a dict such as {Outcome.OK: 'publish'}")
            # The step is taken to end the run, so that only the dict itself is complained of.
            return {Outcome.OK: None}
        return {
            key: self._target(f"next[{getattr(key, 'value', key)!r}]", target)
            for key, target in self.step.next.items()
        }

    def _gate(self) -> Gate | None:
        gate: Any = self.step.gate
        if gate is None:
            return None
        if not isinstance(gate, Gate):
            self._wrong("gate", gate, "a Gate(prompt, options)")
            return None
        if not isinstance(gate.prompt, str) or not gate.prompt.strip():
            self._wrong("the gate's prompt", gate.prompt, "what the person is asked")
        options = self._listed("the gate's options", gate.options, GateOption, "a list of options")
        if not options and gate.options:
            options = [GateOption("stand-in", None)]
        context = self._listed("the gate's context", gate.context, str, "a list of names")
        return Gate(str(gate.prompt), [self._option(o) for o in options], context)

    def _option(self, option: GateOption) -> GateOption:
        if not _is_name(option.label):
            self._wrong("the label of a gate's option", option.label, "a short name")
        target = self._target(f"option {option.label!r}", option.next)
        return GateOption(str(option.label), target, bool(option.requires_input))

    def _target(self, name: str, target: Any) -> Any:
        edge = target if isinstance(target, Edge) else Edge(target)
        if edge.to is not None and not isinstance(edge.to, str | End):
            self._wrong(name, edge.to, _TARGET)
            edge = replace(edge, to=None)
        if edge.bound is not None and not _is_whole(edge.bound, 1):
            self._wrong(f"the bound of {name}", edge.bound, "a whole number from 1")
            edge = replace(edge, bound=None)
        if edge.on_limit not in ("end", "ask"):
            self._wrong(f"on_limit of {name}", edge.on_limit, "'end' or 'ask'")
        return edge

    def _listed(self, name: str, value: Any, kind: type, remedy: str) -> list[Any]:
        if isinstance(value, str) or not isinstance(value, Sequence):
            self._wrong(name, value, remedy)
            return []
        for each in value:
            if not isinstance(each, kind):
                self._wrong(f"an entry of {name}", each, remedy)
        return [each for each in value if isinstance(each, kind)]

    def _wrong(self, name: str, value: Any, remedy: str) -> None:
        what, step = f"{name} is {value!r:.80}", str(self.step.id)
        self.found.append(Problem(self.where, what, remedy, step))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
