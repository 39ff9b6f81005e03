"""Turns a contract workflow into the one graph type."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, ClassVar

from signoff.contracts.checkpoint import COMPLETED, HINT
from signoff.contracts.model import (
    MAX_RETRIES,
    Condition,
    ConditionalNext,
    GateOption,
    HumanGate,
    WorkflowDefinition,
    WorkflowStep,
)
from signoff.contracts.params import params_of
from signoff.contracts.steps import ContractRuntime, ForEach, Single, Together
from signoff.core.code import describe_code
from signoff.core.context import StepContext
from signoff.core.outcome import End, Outcome
from signoff.core.step import Condition as EngineCondition
from signoff.core.step import Edge, Gate, StepDef
from signoff.core.step import GateOption as EngineOption
from signoff.core.workflow import Workflow

NOTATION = "contracts"

_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*(?=@)")
_REFUSES = re.compile(r"\b(reject|stop|abort|cancel|decline|refuse|deny)", re.IGNORECASE)


def compile_definition(
    definition: WorkflowDefinition,
    *,
    source: Mapping[str, Any] | None = None,
    remarks: Sequence[str] = (),
) -> Workflow:
    """Returns the workflow of a definition that was found to be sound."""
    groups = groups_of(definition.steps)
    nodes = {step.name: _node_id(group) for group in groups for step in group}
    contract = ContractRuntime(definition)
    start = definition.initial_step or definition.steps[0].name
    return Workflow(
        definition.type,
        *(_node(group, contract, nodes) for group in groups),
        entry_point=nodes[start],
        description=": ".join(filter(None, (definition.name, definition.description))),
        limits=definition.limits,
        roles=definition.roles,
        notation=NOTATION,
        source={"contract": described(definition), **(source or {})},
        warnings=tuple(remarks),
        inputs=params_of(definition),
    )


def described(definition: WorkflowDefinition) -> dict[str, Any]:
    """Returns a definition as plain data: what is frozen with every run of it."""
    database = definition.database
    return {
        "type": definition.type,
        "database": _shown(database.url) if database else None,
        "steps": [_described_step(step) for step in definition.steps],
    }


def _shown(url: str) -> str:
    """Returns an address as it is kept with runs: no password, no folder that may be moved."""
    return _PASSWORD.sub(r"\1", url) if "://" in url else PurePath(url).name


def _described_step(step: WorkflowStep) -> dict[str, Any]:
    command = step.command
    asked = [step.prompt, step.agent, step.model, step.schema] if step.prompt else None
    branch = step.next
    conditional = (
        [_check(branch.condition), branch.on_true, branch.on_false, branch.max_iterations]
        if isinstance(branch, ConditionalNext)
        else branch
    )
    return {
        "name": step.name,
        "command": describe_code(command) if callable(command) else command and list(command),
        "asks": asked,
        "before": [_described_condition(each) for each in step.preconditions],
        "after": [_described_condition(each) for each in step.postconditions],
        "items": step.parallel_key,
        "next": conditional,
    }


def _described_condition(condition: Condition) -> list[Any]:
    return [condition.name, condition.error, _check(condition.check)]


def _check(check: Any) -> Any:
    return describe_code(check) if callable(check) else check


def groups_of(steps: Sequence[WorkflowStep]) -> list[tuple[WorkflowStep, ...]]:
    """Puts neighbours that run together into one group; all others are groups of their own."""
    groups: list[tuple[WorkflowStep, ...]] = []
    for step in steps:
        together = step.parallel and step.parallel_key is None
        before = groups[-1][-1] if groups else None
        if together and before is not None and before.parallel and before.parallel_key is None:
            groups[-1] = (*groups[-1], step)
        else:
            groups.append((step,))
    return groups


def _node_id(group: Sequence[WorkflowStep]) -> str:
    return "+".join(step.name for step in group)


def _node(
    group: tuple[WorkflowStep, ...], contract: ContractRuntime, nodes: Mapping[str, str]
) -> StepDef:
    last = group[-1]
    handler: Any
    if len(group) > 1:
        handler = Together(contract, group)
    elif last.parallel_key is not None:
        handler = ForEach(contract, last)
    else:
        handler = Single(contract, last)
    return StepDef(
        _node_id(group),
        title=", ".join(step.title for step in group if step.title),
        handler=handler,
        next={}
        if last.human_gate
        else _edges(last, nodes, _back(last, contract.definition, nodes)),
        preconditions=[
            EngineCondition(each.name, ConditionCheck(contract, step, each), each.words)
            for step in group
            for each in step.preconditions
        ],
        postconditions=_checked_after(contract, last) if isinstance(handler, Single) else (),
        retries=MAX_RETRIES,
        gate=_gate(last.human_gate, nodes) if last.human_gate else None,
        # Of several pieces of work each has its own time, and none loses another's.
        timeout=None if len(group) > 1 or last.parallel_key else last.timeout,
    )


def _checked_after(contract: ContractRuntime, step: WorkflowStep) -> list[EngineCondition]:
    """Returns what the engine checks; with a database, the transaction has checked it."""
    if contract.definition.database is not None:
        return []
    return [
        EngineCondition(each.name, ConditionCheck(contract, step, each, in_source=True), each.words)
        for each in step.postconditions
    ]


def _edges(
    step: WorkflowStep, nodes: Mapping[str, str], back: Collection[str]
) -> dict[Outcome, str | End | Edge | None]:
    branch = step.next
    if not isinstance(branch, ConditionalNext):
        return {Outcome.OK: _way(branch, nodes)}
    # The branch that leads back is the one that is counted; where none does, the other way out.
    loops_on_true = branch.on_true in back and branch.on_false not in back
    looping = branch.on_true if loops_on_true else branch.on_false
    counted = Edge(
        nodes[looping],
        bound=branch.max_iterations,
        starts_iteration=looping in back,
        on_limit="ask",
        resets=True,
    )
    plain = _way(branch.on_false if loops_on_true else branch.on_true, nodes)
    if loops_on_true:
        return {Outcome.OK: counted, Outcome.ITERATE: plain}
    return {Outcome.OK: plain, Outcome.ITERATE: counted}


def _back(step: WorkflowStep, definition: WorkflowDefinition, nodes: Mapping[str, str]) -> set[str]:
    """Returns which targets of a branch lead back: to a step above, or by steps that return here.

    A target further down leads back only where no person has to say so on the way.
    """
    branch = step.next
    if not isinstance(branch, ConditionalNext):
        return set()
    names, targets = list(nodes), {branch.on_true, branch.on_false}
    here = nodes[step.name]
    above = names[: names.index(step.name)]
    back = {target for target in targets if target in above or nodes[target] == here}
    return back or {target for target in targets if here in _reached(target, definition, nodes)}


def _reached(start: str, definition: WorkflowDefinition, nodes: Mapping[str, str]) -> set[str]:
    """Returns the nodes that a step leads to without a gate, its own among them."""
    # The last step of a group says what follows; it stands under the group's node.
    last = {nodes[step.name]: step for step in definition.steps}
    found: set[str] = set()
    left = [nodes[start]]
    while left:
        node = left.pop()
        if node in found:
            continue
        found.add(node)
        branch = last[node].next if last[node].human_gate is None else None
        ways = (
            (branch.on_true, branch.on_false) if isinstance(branch, ConditionalNext) else (branch,)
        )
        left.extend(nodes[way] for way in ways if way is not None)
    return found


def _way(target: str | None, nodes: Mapping[str, str]) -> Edge | None:
    """Returns an edge that, should it loop too often, asks a person instead of ending the run."""
    return None if target is None else Edge(nodes[target], on_limit="ask")


def _gate(gate: HumanGate, nodes: Mapping[str, str]) -> Gate:
    options = [
        EngineOption(each.label, _leads_to(each, nodes), each.requires_input)
        for each in gate.options
    ]
    return Gate(gate.prompt, options, tuple(gate.context))


def _leads_to(option: GateOption, nodes: Mapping[str, str]) -> Edge | End | None:
    if option.next_step is not None:
        return _way(option.next_step, nodes)
    rejected = option.ends == "rejected" or (
        option.ends is None and _REFUSES.search(option.label) is not None
    )
    # Only an end that was asked for counts as success; a refusal has a status of its own.
    return End.REJECTED if rejected else None


@dataclass(frozen=True)
class ConditionCheck:
    """Checks a condition of a step for the engine, before or after the step's work."""

    contract: ContractRuntime
    step: WorkflowStep
    condition: Condition
    in_source: bool = False
    """Whether the workflow's source alone describes it."""
    recorded_name: ClassVar[str] = "Held.__call__"

    @property
    def definition(self) -> list[Any]:
        """What a run depends on."""
        return _described_condition(self.condition)

    async def __call__(self, ctx: StepContext) -> bool:
        """Tells whether it holds."""
        if ctx.result is None:
            return await self.contract.holds(ctx, self.step, self.condition.check)
        done = {"result": ctx.result[COMPLETED][-1]["result"], "hint": ctx.result[HINT]}
        before = replace(ctx, step_state=ctx.state_before)
        return await self.contract.holds(before, self.step, self.condition.check, done)
