"""Evaluates one step of a skill from its parameters alone; nothing is stored.

The result says what follows as data: the commands turn it into text. What the engine counts in a
run, the caller counts here: `iteration` says how often a step that repeats has been reached.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.core.args import BoundedInt
from signoff.core.edges import gate_name
from signoff.core.errors import HandlerFailed, SignoffError, UsageError
from signoff.core.outcome import Outcome
from signoff.core.remedies import PassOption
from signoff.core.step import ITERATION, StepDef
from signoff.core.step_output import NextCommand, StepOutput, command_to
from signoff.core.workflow import Workflow
from signoff.documents.python_files import describe_failure

STATE_DIR = "state_dir"


@dataclass(frozen=True)
class EvaluatedStep:
    """One step with its instructions, and how to continue."""

    workflow: Workflow
    number: int
    step: StepDef
    output: StepOutput
    again: NextCommand
    """This step with the same parameters."""
    following: NextCommand | None = None
    """The only way to continue; None if there is none, or several."""
    choices: Mapping[str, NextCommand | None] = field(default_factory=dict)
    """The ways to continue by the verdict of a sub-agent, or by what a human decides."""
    state_dir: str = ""
    """The directory that the steps share with sub-agents, if there is one."""
    limit: int | None = None
    """The number of rounds, if the step would be repeated and may not be any more."""
    iteration: int = 1
    """The round of a step that repeats, as the caller counts it."""
    is_over: bool = False
    """Whether the report of the round before has ended the rounds, so that this one is not due."""

    @property
    def is_last(self) -> bool:
        """Whether nothing follows, whatever happens."""
        return self.following is None and not self.choices and self.limit is None


def step_at(workflow: Workflow, number: int) -> StepDef:
    """Returns a step by its place in the order of the steps, from 1."""
    steps = [*workflow.steps.values()]
    if not 1 <= number <= len(steps):
        raise UsageError(f"{workflow.name!r} has no step {number}; its steps are 1 to {len(steps)}")
    return steps[number - 1]


def iterations(workflow: Workflow, step: StepDef) -> BoundedInt | None:
    """Returns the rounds that a step can have; None if it does not repeat."""
    edge = workflow.edges.get(step.id, Outcome.ITERATE.value)
    if edge is None:
        return None
    declared = workflow.params[step.id].get(ITERATION)
    domain = declared.domain() if declared is not None else None
    if isinstance(domain, BoundedInt):
        return domain
    # The first round comes before the edge is taken for the first time.
    times = edge.bound if edge.bound is not None else workflow.max_iterations
    return BoundedInt(1, (times or 0) + 1)


def repeats(workflow: Workflow) -> bool:
    """Tells whether a workflow has steps that repeat, so that the caller has to count."""
    return any(iterations(workflow, step) is not None for step in workflow.steps.values())


def keeps_state(workflow: Workflow) -> bool:
    """Tells whether the steps of a workflow share a state directory."""
    return STATE_DIR in workflow.input_params or STATE_DIR in (workflow.inputs or ())


def evaluate_step(workflow: Workflow, number: int, params: Mapping[str, Any]) -> EvaluatedStep:
    """Evaluates a step with the parameters that were given, and those that the first one creates.

    Raises `InvalidParams` or `UsageError` if they do not fit, before anything is created.
    """
    step = step_at(workflow, number)
    given = dict(params)
    # A skill without repeated steps may have a parameter of its own called `iteration`, so the
    # count is taken out only where there is something to count.
    iteration = _iteration(workflow, step, given) if repeats(workflow) else None
    values = workflow.bind_at(step.id, given)
    if number > 1 and keeps_state(workflow) and values.get(STATE_DIR) is None:
        what = "this step shares files with those before it"
        raise UsageError(what, remedy=PassOption(STATE_DIR, "DIR"))
    # Preparing may create files, so it comes after everything that could refuse the parameters.
    if number == 1 and workflow.prepare is not None:
        given |= workflow.prepare(values)
    state = {} if iteration is None else {ITERATION: iteration}
    output = _run(workflow, step, given, state)
    evaluated = EvaluatedStep(
        workflow,
        number,
        step,
        output,
        _iterated(workflow, NextCommand(workflow.name, step.id, number, given), iteration or 1),
        output.next_command,
        state_dir=str(given.get(STATE_DIR) or ""),
    )
    evaluated = _with_choices(evaluated, given)
    if iteration is None:
        return evaluated
    # By hand, the parameters of a round are those that the round before reported. A report that
    # already ends the loop must not have the agent do the same work once more.
    leaves = output.outcome not in (None, Outcome.ITERATE)
    is_over = leaves and _is_over(workflow, step, given, iteration)
    return _counted(replace(evaluated, iteration=iteration, is_over=is_over), iteration)


def _iteration(workflow: Workflow, step: StepDef, given: dict[str, Any]) -> int:
    """Returns the round; `given` has it afterwards only if the step's handler takes it."""
    domain = iterations(workflow, step) or BoundedInt(1, sys.maxsize)
    value = given.pop(ITERATION, domain.lo)
    try:
        iteration = int(value)
    except ValueError:
        what = f"the round {value!r:.80} is not a whole number"
        raise UsageError(f"parameter {ITERATION!r}: {what}") from None
    if not domain.lo <= iteration <= domain.hi:
        bounds = f"from {domain.lo} to {domain.hi}" if domain.hi < sys.maxsize else "from 1"
        raise UsageError(f"parameter {ITERATION!r}: the round {iteration} is not {bounds}")
    if ITERATION in workflow.params[step.id]:
        given[ITERATION] = iteration
    return iteration


def _run(
    workflow: Workflow, step: StepDef, given: Mapping[str, Any], state: Mapping[str, Any]
) -> StepOutput:
    try:
        return workflow.run(step.id, given, state)
    except SignoffError:
        raise
    except Exception as error:  # a user's handler may raise anything at all
        detail = describe_failure(error)
        raise HandlerFailed(f"the handler of step {step.id!r} failed: {detail}") from error


def _is_over(workflow: Workflow, step: StepDef, given: Mapping[str, Any], iteration: int) -> bool:
    """Tells whether a run would have left the step after the round before.

    The parameters are what that round reported, so the handler is asked with its number.
    """
    domain = iterations(workflow, step)
    if domain is None or iteration <= domain.lo:
        return False
    before = iteration - 1
    known = {**given, ITERATION: before} if ITERATION in given else given
    return _run(workflow, step, known, {ITERATION: before}).outcome is not Outcome.ITERATE


def _with_choices(evaluated: EvaluatedStep, given: Mapping[str, Any]) -> EvaluatedStep:
    """Adds the ways to continue that a sub-agent or a human decides about."""
    workflow, step, output = evaluated.workflow, evaluated.step, evaluated.output
    choices = {outcome.value: command for outcome, command in output.next_commands.items()}
    if step.gate is not None and output.outcome in (None, Outcome.OK):
        # Behind a gate nothing follows from OK alone: the human's options take its place.
        choices.pop(Outcome.OK.value, None)
        for option in step.gate.options:
            edge = workflow.edges.get(step.id, gate_name(option.label))
            to = edge.to if edge is not None else None
            choices[option.label] = command_to(workflow, step.id, to, given)
    return replace(evaluated, choices=choices)


def _counted(evaluated: EvaluatedStep, iteration: int) -> EvaluatedStep:
    """Sets the round of everything that follows.

    Repeating a step increments it, up to the bound. Leaving a step that repeats ends its loop, so
    that the next one starts at 1. Other steps pass it on.
    """
    workflow, step = evaluated.workflow, evaluated.step
    domain = iterations(workflow, step)
    if evaluated.output.outcome is Outcome.ITERATE and domain is not None:
        if iteration >= domain.hi:
            return replace(evaluated, following=None, limit=domain.hi)
        following = _with_iteration(workflow, evaluated.following, iteration + 1)
        return replace(evaluated, following=following)
    # A loop of several steps is counted where it is closed, so the steps in between hand the number
    # on; a step that repeats by itself starts its own count.
    count = iteration if domain is None and iteration > 1 else 1
    return replace(
        evaluated,
        following=_with_iteration(workflow, evaluated.following, count),
        choices={
            label: _with_iteration(workflow, each, count)
            for label, each in evaluated.choices.items()
        },
    )


def _with_iteration(
    workflow: Workflow, command: NextCommand | None, iteration: int
) -> NextCommand | None:
    return _iterated(workflow, command, iteration) if command is not None else None


def _iterated(workflow: Workflow, command: NextCommand, iteration: int) -> NextCommand:
    params = {name: value for name, value in command.params.items() if name != ITERATION}
    remaining = {name: each for name, each in command.open.items() if name != ITERATION}
    own = workflow.params[command.step].get(ITERATION)
    if iteration > 1 or (own is not None and own.required):
        params[ITERATION] = iteration
    return replace(command, params=params, open=remaining)
