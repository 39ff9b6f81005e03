"""Every input of every step of a skill, for tests that leave no combination out.

    for params in generate_inputs(WORKFLOW, samples={"topic": ["rain", "two words"]}):
        assert run_skill_invocation(WORKFLOW, params) == 0

The values come from the domains of the parameters. Handlers are called to find out which steps a
mode skips, so they must only decide, as the handlers of skills do.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from signoff.app.settings.trust import context_here
from signoff.core.args import BoundedInt, ChoiceSet, Constant, Domain
from signoff.core.errors import SignoffError, UnknownName, UsageError
from signoff.core.outcome import Outcome
from signoff.core.step import ITERATION, StepDef
from signoff.core.step_output import NextCommand
from signoff.core.workflow import Workflow
from signoff.documents.discovery import NAME, assigned_value
from signoff.skills.discovery import find_source
from signoff.skills.stateless import STATE_DIR, iterations, step_at
from signoff.skills.step_text import SkillPlace, command_text

LARGEST_PRODUCT = 10_000
"""How many combinations a step may have unless the author allows more."""

LARGEST_WALK = 1_000
"""A step with more combinations of other parameters is not evaluated to find out where it leads;
any of its ways on may be taken."""

Samples = Mapping[str, Sequence[Any]]
"""Values to test with, by parameter; None means that the parameter is left out."""
Schema = dict[str, dict[str, Domain]]


def extract_schema(workflow: Workflow, samples: Samples | None = None) -> Schema:
    """Returns the values that each parameter of each step can have, by step and parameter.

    `samples` are the values of open parameters, such as texts; an open parameter without samples
    is left out. Samples also replace a domain that is too large.
    """
    known = {*workflow.declared_params, *(workflow.inputs or ())}
    for name in samples or ():
        if workflow.inputs is not None and name not in known:
            raise UnknownName("parameter", name, sorted(known))
    return {
        step.id: dict(_domains(workflow, step, samples or {})) for step in workflow.steps.values()
    }


def generate_inputs(
    workflow: Workflow, samples: Samples | None = None, *, limit: int = LARGEST_PRODUCT
) -> Iterator[dict[str, Any]]:
    """Yields `step`, `total_steps` and the parameters of that step, every combination once.

    A step is left out with the values that skip it: those with which no path leads to it. Raises
    `UsageError` before anything runs if a required parameter has neither a domain nor samples, or
    if a step has more than `limit` combinations.
    """
    schema = extract_schema(workflow, samples)
    problems = [*_open_parameters(workflow, schema), *_large_products(schema, limit)]
    if problems:
        raise UsageError(f"inputs of {workflow.name!r}: {'; '.join(problems)}")
    return _inputs(workflow, schema)


generate_test_inputs = generate_inputs
"""The same function under its longer name."""


def _domains(workflow: Workflow, step: StepDef, samples: Samples) -> Iterator[tuple[str, Domain]]:
    own, declared = workflow.params[step.id], workflow.declared_params
    # Every step takes the inputs of the workflow: handlers read them from their context.
    shared = [*workflow.input_params, *sorted(workflow.inputs or ())]
    undeclared = [name for name in samples if name not in declared]
    for name in dict.fromkeys([*shared, *undeclared, *own]):
        domain = declared[name].domain() if name in declared else None
        if name == ITERATION:
            domain = iterations(workflow, step) or (domain if declared[name].required else None)
        elif name in samples:
            domain = ChoiceSet(tuple(samples[name]))
        if domain is not None:
            yield name, domain
    if ITERATION not in own and (counted := iterations(workflow, step)) is not None:
        yield ITERATION, counted


def _open_parameters(workflow: Workflow, schema: Schema) -> Iterator[str]:
    """Yields why a step cannot be run: a parameter that it needs has no values."""
    for step, domains in schema.items():
        for name, param in {**workflow.input_params, **workflow.params[step]}.items():
            if param.required and name not in domains:
                yield f"step {step!r} needs samples for {name!r}"


def _large_products(schema: Schema, limit: int) -> Iterator[str]:
    for step, domains in schema.items():
        sizes = {name: _size(domain) for name, domain in domains.items()}
        if (product := math.prod(sizes.values())) > limit:
            factors = " x ".join(f"{size:,} of {name!r}" for name, size in sizes.items())
            yield (
                f"step {step!r} has {product:,} combinations ({factors}), more than {limit:,}; "
                "pass samples for a parameter, or a larger limit"
            )


def _size(domain: Domain) -> int:
    # A range is not enumerated: it may have more numbers than there is memory for.
    return domain.hi - domain.lo + 1 if isinstance(domain, BoundedInt) else len(_values(domain))


def _values(domain: ChoiceSet | Constant | BoundedInt) -> list[Any]:
    """Returns the values of a domain, each once; samples need not be hashable."""
    return list({repr(value): value for value in domain}.values())


def _combinations(domains: Mapping[str, Domain]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*map(_values, domains.values())):
        yield dict(zip(domains, values, strict=True))


def _inputs(workflow: Workflow, schema: Schema) -> Iterator[dict[str, Any]]:
    routes = Routes(workflow, schema)
    for number, step in enumerate(workflow.steps, 1):
        for params in _combinations(schema[step]):
            if not routes.skip(step, params):
                yield {"step": number, "total_steps": workflow.total_steps, **params}


class Routes:
    """Which steps are reached while a parameter has one value all the way."""

    def __init__(self, workflow: Workflow, schema: Schema) -> None:
        self._workflow = workflow
        self._schema = schema
        self._reached: dict[tuple[str, str], set[str]] = {}

    def skip(self, step: str, params: Mapping[str, Any]) -> bool:
        """Tells whether one of the values leads past a step."""
        if step == self._workflow.entry_point:
            return False
        # The round is no mode: it differs from call to call, so no step is skipped because of it.
        modes = [(name, value) for name, value in params.items() if name != ITERATION]
        return any(step not in self._reached_with(name, value) for name, value in modes)

    def _reached_with(self, name: str, value: Any) -> set[str]:
        """Returns the steps that a walk from the first one reaches."""
        key = (name, repr(value))
        if key not in self._reached:
            found, remaining = {self._workflow.entry_point}, [self._workflow.entry_point]
            while remaining:
                targets = {to for to in self._next(remaining.pop(), name, value) if to is not None}
                remaining += targets - found
                found |= targets
            self._reached[key] = found
        return self._reached[key]

    def _next(self, step: str, name: str, value: Any) -> set[str | None]:
        """Returns where a step leads, whatever its other parameters are; None is the end."""
        every = set(_all_targets(self._workflow, step))
        others = {each: domain for each, domain in self._schema[step].items() if each != name}
        if math.prod(map(_size, others.values())) > LARGEST_WALK:
            return every
        targets: set[str | None] = set()
        # A handler may read a parameter from its context without declaring it.
        for params in _combinations(others):
            targets |= _targets(self._workflow, self._workflow[step], {**params, name: value})
        # A value that only repeats the step does not skip others: the next round replaces it.
        return every if targets == {step} else targets


def _targets(workflow: Workflow, step: StepDef, params: Mapping[str, Any]) -> set[str | None]:
    """Returns where a step may lead with the given parameters; None is the end."""
    given = {name: value for name, value in params.items() if value is not None}
    count = given.get(ITERATION)
    if ITERATION not in workflow.params[step.id]:
        given.pop(ITERATION, None)
    every = set(_all_targets(workflow, step.id))
    try:
        outcome = workflow.run(step.id, given, {} if count is None else {ITERATION: count}).outcome
    except Exception:  # noqa: BLE001  # running the input reports it; here it may lead anywhere
        return every
    edge = workflow.edges.find(step.id, outcome) if outcome is not None else None
    decided = step.gate is None or outcome is not Outcome.OK
    return {_step_of(edge.to)} if edge is not None and decided else every


def _all_targets(workflow: Workflow, step: str) -> Iterator[str | None]:
    for edge in workflow.edges.from_step(step):
        yield _step_of(edge.to)


def _step_of(to: object) -> str | None:
    return to if type(to) is str else None


_WORD = re.compile(r"(?!(?:true|false|null|NaN|Infinity)$)[A-Za-z_][\w-]*", re.ASCII)
"""A text that cannot be taken for another JSON value when its quotes are left out."""


def case_id(workflow: Workflow, params: Mapping[str, Any]) -> str:
    """Returns a name for an input, for `pytest.mark.parametrize`; no other input has it."""
    values = [
        f"{name}={_value_id(params[name])}"
        for name in sorted(params)
        if name not in ("step", "total_steps")
    ]
    return "-".join([workflow.name, str(params["step"]), *values])


def run_skill_invocation(workflow: Workflow, params: Mapping[str, Any]) -> int:
    """Runs `signoff skill step` with an input in the current folder; returns its exit code.

    A skill that keeps state gets a new state directory, which is removed afterwards. Error
    messages are printed on stderr.
    """
    with _prepared(workflow, params) as given:
        command = NextCommand(workflow.name, "", params["step"], given)
        words = shlex.split(command_text(command, SkillPlace(_target(workflow))))
        # -P: a folder called `signoff` in the current one must not be taken for the program.
        done = subprocess.run(
            [sys.executable, "-P", "-m", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=False,
        )
    return done.returncode


def _value_id(value: Any) -> str:
    if isinstance(value, str) and _WORD.fullmatch(value):
        return str(value)
    return json.dumps(value, default=repr)


@contextmanager
def _prepared(workflow: Workflow, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Adds what the first step prepares for the others, and removes it at the end."""
    given = {
        name: value
        for name, value in params.items()
        if value is not None and name not in ("step", "total_steps")
    }
    added: Mapping[str, Any] = {}
    # Parameters that do not fit are left to the command, which refuses them.
    with suppress(SignoffError):
        if workflow.prepare is not None:
            values = workflow.bind_at(step_at(workflow, params["step"]).id, given)
            added = workflow.prepare(values)
    try:
        yield {**given, **added}
    finally:
        if STATE_DIR in added:
            shutil.rmtree(added[STATE_DIR], ignore_errors=True)


def _target(workflow: Workflow) -> str:
    """Returns how the command finds a workflow: by its name, else by its file."""
    with suppress(SignoffError):
        if find_source(workflow.name, context_here()).load() is workflow:
            return workflow.name
    modules = [each for each in list(sys.modules.values()) if vars(each).get(NAME) is workflow]
    files = [Path(each.__file__) for each in modules if each.__file__]
    # A module that only imports it from another one does not count.
    own = [str(file) for file in files if assigned_value(file.read_text("utf-8"))]
    return own[0] if own else workflow.name
