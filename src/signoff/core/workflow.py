"""The graph that every notation compiles to: immutable, and validated as a whole."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from signoff.core import errors
from signoff.core.args import UNDECLARED, Param, bind, missing, read_params
from signoff.core.code import constant_reads
from signoff.core.context import StepContext
from signoff.core.digest import describe, digest
from signoff.core.edges import EdgeTable, edge_table
from signoff.core.frozen import read_only
from signoff.core.outcome import Outcome
from signoff.core.run_state import RunState
from signoff.core.spend import Limits
from signoff.core.step import WORKER, HandlerObject, StepDef
from signoff.core.step_output import StepOutput, next_command
from signoff.core.validation import param_problems, problems_of

PYTHON = "python"
"""The notation of workflows that are built in Python."""

Prepare = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""`(parameters of the run) -> more parameters`."""


@dataclass(frozen=True, init=False, eq=False)
class Workflow:
    """A named graph of steps; building one reports every problem it has.

    A workflow is equal only to itself, like its handlers. Compare digests to find out whether two
    have the same definition.
    """

    name: str
    steps: Mapping[str, StepDef]
    entry_point: str
    description: str
    limits: Limits
    max_iterations: int | None
    """How many rounds a run may have; with None only the bounds of edges count."""
    notation: str
    """The notation it was written in; `python` for a graph built in Python."""
    roles: Mapping[str, str]
    """Agents by role, for roles that the settings do not map."""
    source: Mapping[str, Any]
    """What the notation stores with each run (goal, configuration); part of the digest."""
    warnings: tuple[str, ...]
    """Warnings for its author; no run depends on them."""
    inputs: frozenset[str] | None
    """Parameters that handlers read from their context, besides those that they declare. None
    accepts any name."""
    reads: Mapping[str, tuple[str, ...]]
    """Those of them that nothing declares, by step: names that its handler reads as constants."""
    required: frozenset[str]
    """Those of them without which no run gets past its first step. Unlike a `Param`, this is not
    part of the digest."""
    input_params: Mapping[str, Param]
    """Those of them that are declared as data: converted and checked like those of handlers."""
    prepare: Prepare | None
    """Reads what a run needs from outside exactly once: called when a run starts, after its
    parameters are checked and before anything of it exists. What it returns is recorded as more
    parameters, or as values of parameters that are None; if it raises, nothing was started. Not
    part of the digest."""
    agents: Mapping[str, Any]
    """Agents that the workflow brings, by name, for its runs only. An agent of the settings that
    has the same name wins. Not part of the digest."""

    def __init__(
        self,
        name: str,
        *steps: StepDef,
        entry_point: str | None = None,
        description: str = "",
        limits: Limits | None = None,
        max_iterations: int | None = None,
        notation: str = PYTHON,
        roles: Mapping[str, str] | None = None,
        source: Mapping[str, Any] | None = None,
        warnings: Sequence[str] = (),
        inputs: Collection[str | Param] | Mapping[str, Param] | None = (),
        required: Collection[str] = (),
        prepare: Prepare | None = None,
        agents: Mapping[str, Any] | None = None,
        validate: bool = True,
    ) -> None:
        """Builds the graph; the first step is the entry point unless one is named."""
        first = next((s.id for s in steps if isinstance(s, StepDef)), "")
        entry = entry_point if entry_point is not None else first
        names, input_params = _read_inputs(inputs)
        problems = problems_of(name, steps, entry, max_iterations, limits) if validate else []
        problems += _input_problems(input_params)
        if problems:
            raise errors.InvalidWorkflow(name, problems)
        # A frozen dataclass with an `__init__` of its own sets its fields this way.
        vars(self).update(
            name=name,
            steps=MappingProxyType({s.id: s for s in steps}),
            entry_point=entry,
            description=description,
            limits=limits or Limits(),
            max_iterations=max_iterations,
            notation=notation,
            roles=MappingProxyType(dict(roles or {})),
            source=read_only(dict(source or {})),
            warnings=tuple(warnings),
            input_params=MappingProxyType(input_params),
            inputs=names,
            prepare=prepare,
            agents=MappingProxyType(dict(agents or {})),
            required=frozenset(required),
        )
        # Other notations know what their handlers read.
        reads = self._undeclared() if names is not None and notation == PYTHON else {}
        inputs_read = names.union(*reads.values()) if names is not None else None
        vars(self).update(reads=MappingProxyType(reads), inputs=inputs_read)

    def __getitem__(self, step_id: str) -> StepDef:
        """Returns a step by its id."""
        try:
            return self.steps[step_id]
        except KeyError:
            raise errors.UnknownName("step", step_id, self.steps) from None

    def with_prepare(self, prepare: Prepare) -> Workflow:
        """Returns the same workflow with another `prepare`, such as one that has the result."""
        return self._changed(prepare=prepare)

    def _changed(self, **changes: Any) -> Workflow:
        # Only the fields are copied: cached values such as the digest depend on the source.
        other = object.__new__(Workflow)
        vars(other).update(
            {each.name: getattr(self, each.name) for each in fields(self)}, **changes
        )
        return other

    @property
    def total_steps(self) -> int:
        """How many steps there are."""
        return len(self.steps)

    @cached_property
    def params(self) -> Mapping[str, Mapping[str, Param]]:
        """Parameters by step, from the signatures of the handlers."""
        params = {s.id: MappingProxyType(read_params(s.handler)) for s in self.steps.values()}
        return MappingProxyType(params)

    @property
    def _params(self) -> Mapping[str, Mapping[str, Param]]:
        """Parameters by step, under the name that tests of skills use."""
        return self.params

    @property
    def _step_order(self) -> list[str]:
        """The ids of the steps; the number of a step is its place in this list, from 1."""
        return list(self.steps)

    @property
    def declared_params(self) -> Mapping[str, Param]:
        """All declared parameters by name, those of the workflow before those of its handlers."""
        declared = dict(self.input_params)
        for of_step in self.params.values():
            for name, param in of_step.items():
                known = declared.get(name)
                if known is None or (known.required and name not in self.input_params):
                    declared[name] = param
        return declared

    @cached_property
    def edges(self) -> EdgeTable:
        """Every edge from step to step, with loops marked and bounded."""
        return edge_table(tuple(self.steps.values()), self.entry_point, self.max_iterations)

    @cached_property
    def definition_json(self) -> str:
        """The whole definition as JSON, as it is stored with each run."""
        return json.dumps(self._description)

    @cached_property
    def digest(self) -> str:
        """Changes when anything a run depends on changes."""
        return digest(self._description)

    @cached_property
    def _description(self) -> dict[str, Any]:
        # Cached, because reading the code of every handler takes a while.
        return describe(self)

    def bind(self, params: Mapping[str, Any], also: Collection[str] = ()) -> dict[str, Any]:
        """Converts and checks the parameters of a run; every problem is reported at once.

        What only steps with instructions take may be missing: their workers report it. `also` are
        names that are accepted although the workflow does not take them.
        """
        return self._bind(self.declared_params, params, also, self._reported)

    def taken(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns those of a run's stored parameters with which another run could be started.

        The others were prepared when the run started, and are prepared again.
        """
        # What `prepare` read from outside is left out on purpose: the new run reads it as it is
        # now.
        names = {*self.declared_params, *(params if self.inputs is None else self.inputs)}
        return {name: value for name, value in params.items() if name in names}

    def bind_at(self, step_id: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Converts and checks the parameters for one step; other steps require none of theirs."""
        declared = self.declared_params
        elsewhere = declared.keys() - self.params[self[step_id].id] - self.input_params.keys()
        return self._bind(declared, params, (), elsewhere)

    def _bind(
        self,
        declared: Mapping[str, Param],
        params: Mapping[str, Any],
        also: Collection[str],
        later: Collection[str],
    ) -> dict[str, Any]:
        others = None if self.inputs is None else {*self.inputs, *also} - {*declared}
        remedy = UNDECLARED if self.notation == PYTHON else ""
        values, problems = bind(declared, params, others, later, remedy)
        problems += [missing(name) for name in sorted(self.required - values.keys())]
        if problems:
            raise errors.InvalidParams(problems)
        return values

    def correct(self, params: Mapping[str, Any], state: RunState) -> dict[str, Any]:
        """Returns corrected parameters of a run; refuses one that a finished step may have used.

        For declared parameters the steps that use them are known. Parameters that handlers read
        from their context may have been used by any step.
        """
        # What the run was started with was checked then: a file may be gone since.
        declared_params = {
            name: param if name in params else replace(param, check=None)
            for name, param in self.declared_params.items()
        }
        # `prepare`, or the definition before an adopted one, may have added others.
        values = self._bind(
            declared_params, {**state.params, **params}, state.params, self._reported
        )
        declared = {name for of_step in self.params.values() for name in of_step}
        finished = [
            step
            for step, visits in state.visits.items()
            if step != state.step or visits > 1 or state.pending is not None
        ]
        for name in params:
            used = [s for s in finished if name not in declared or name in self.params.get(s, ())]
            if used:
                raise errors.UsageError(
                    f"parameter {name!r} cannot be corrected: finished steps may have used it "
                    f"({', '.join(used)}); start a new run"
                )
        return {name: values[name] for name in params}

    def with_source(self, **more: Any) -> Workflow:
        """Returns the same workflow with additions to its source."""
        return self._changed(source=read_only({**self.source, **more}))

    def run(
        self,
        step_id: str,
        params: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> StepOutput:
        """Evaluates one step by hand and returns what comes next; nothing is stored.

        What a sub-agent has to decide stays open: the output says what follows each outcome.
        Parameters that only other steps require may be left out.
        """
        step, given = self[step_id], {**(params or {}), **more}
        values = self.bind_at(step_id, given)
        named = {name: values[name] for name in given if name in values}
        before, handler = dict(state or {}), step.handler
        actions = tuple(map(str, step.actions))
        if isinstance(handler, HandlerObject):
            commands = {each: next_command(self, step.id, each, named) for each in handler.outcomes}
            return StepOutput(
                step.id, step.title, actions, None, before, None, handler, None, commands
            )
        outcome, update = _evaluate(self, step, values, before)
        if step.gate is None or outcome is not Outcome.OK:
            self.edges.need(step.id, outcome)
        after = {**before, **update}
        follow = next_command(self, step.id, outcome, named)
        target = follow.step if follow is not None else None
        return StepOutput(step.id, step.title, actions, outcome, after, target, next_command=follow)

    def _undeclared(self) -> dict[str, tuple[str, ...]]:
        """Returns the names that handlers read from their context and nothing declares, by step."""
        found = {
            step.id: names
            for step in self.steps.values()
            if callable(step.handler) and (names := constant_reads(step.handler, "workflow_params"))
        }
        declared = {*self.declared_params, *(self.inputs or ())} if found else {}
        return {
            step: undeclared
            for step, names in found.items()
            if (undeclared := tuple(name for name in names if name not in declared))
        }

    @property
    def _reported(self) -> Collection[str]:
        """The parameters that only workers have to know."""
        known: set[str] = set(self.input_params)
        for step in self.steps.values():
            if step.agent != WORKER:
                known |= self.params[step.id].keys()
        return self.declared_params.keys() - known


def _read_inputs(
    inputs: Collection[str | Param] | Mapping[str, Param] | None,
) -> tuple[frozenset[str] | None, dict[str, Param]]:
    """Returns the names among the inputs of a workflow, and the parameters among them."""
    if inputs is None:
        return None, {}
    if isinstance(inputs, Mapping):
        return frozenset(), {name: replace(param, name=name) for name, param in inputs.items()}
    params = {each.name: each for each in inputs if isinstance(each, Param)}
    return frozenset(each for each in inputs if not isinstance(each, Param)), params


def _input_problems(params: Mapping[str, Param]) -> list[errors.Problem]:
    return [
        errors.Problem("inputs", what, remedy)
        for param in params.values()
        for what, remedy in param_problems(param)
    ]


def _evaluate(
    workflow: Workflow, step: StepDef, values: dict[str, Any], state: dict[str, Any]
) -> tuple[Outcome, dict[str, Any]]:
    if not callable(step.handler):
        return Outcome.OK, {}
    # A step that is evaluated by hand has to behave exactly as it will in a run.
    # As in a run: a handler that changes what it is given would decide otherwise there.
    values, state = read_only(values), read_only(state)
    context = StepContext(step.id, values, state)
    named = {name: values[name] for name in workflow.params[step.id] if name in values}
    returned = step.handler(context, **named)
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        raise errors.UsageError(
            f"step {step.id!r} is async; a single step can only be evaluated by hand when its "
            "handler is a plain function"
        )
    return checked_result(step.id, returned)


def checked_result(step_id: str, returned: Any) -> tuple[Outcome, dict[str, Any]]:
    """Returns the outcome and the update that a handler returned, or raises `BadHandlerResult`."""
    match returned:
        case (Outcome() as outcome, dict() as update) if outcome is not Outcome.DEFAULT:
            return outcome, update
        case (Outcome.DEFAULT, _):
            what = "Outcome.DEFAULT, which is only for `next`"
        case _:
            what = f"{type(returned).__name__} {returned!r:.80}"
    raise errors.BadHandlerResult(
        f"the handler of step {step_id!r} must return (Outcome, dict), not {what}"
    )
