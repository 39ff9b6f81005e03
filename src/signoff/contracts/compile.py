"""Compiles a contract definition into a workflow of the engine."""

from __future__ import annotations

import ast
import re
import sysconfig
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec, resolve_name
from pathlib import Path, PurePath
from typing import Any

from signoff.contracts.checkpoint import COMPLETED, HINT, RESULTS, checkpoint_of, shown_value
from signoff.contracts.database import check_address
from signoff.contracts.model import (
    MAX_RETRIES,
    Check,
    Condition,
    ConditionalNext,
    Database,
    GateOption,
    HumanGate,
    WorkflowDefinition,
    WorkflowStep,
)
from signoff.contracts.runtime import ContractRuntime, ForEach, PerformedStep, Single, Together
from signoff.core.code import describe_code, function_of, parse_module
from signoff.core.context import StepContext
from signoff.core.digest import text_digest
from signoff.core.errors import ConfigError
from signoff.core.outcome import End, Outcome
from signoff.core.step import Condition as EngineCondition
from signoff.core.step import Edge, Gate, StepDef
from signoff.core.step import GateOption as EngineOption
from signoff.core.workflow import Workflow
from signoff.documents.mistakes import Path as KeyPath
from signoff.notation import Ask, DryRunPlan

NOTATION = "contracts"

_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*(?=@)")
_PROMPT_NAME = re.compile(r"\{\{\s*(\w+)[\w.]*\s*\}\}")
_PARAMETER = re.compile(r"(?<![\w.])params\s*\.\s*([A-Za-z_]\w*)")
_ALL_PARAMETERS = re.compile(r"(?<![\w.])params(?!\w)(?!\s*\.\s*[A-Za-z_])")


def compile_definition(
    definition: WorkflowDefinition,
    *,
    described: WorkflowDefinition | None = None,
    source: Mapping[str, Any] | None = None,
) -> Workflow:
    """Returns the workflow of a definition without problems.

    `described` is the definition as it is stored with runs, if that differs; `source` is stored
    in addition.
    """
    groups = group_steps(definition.steps)
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
        source={"contract": describe_definition(described or definition), **(source or {})},
        inputs=param_names(definition),
        required=_first_names(definition, start),
        prepare=partial(_require_database, definition.database) if definition.database else None,
        warnings=_unstated_ends(definition),
    )


def _require_database(database: Database, _params: Mapping[str, Any]) -> dict[str, Any]:
    """Raises `ConfigError` for a file that does not exist, before anything of a run does."""
    path = check_address(database.url)
    if path is not None and not path.exists():
        raise ConfigError(f"there is no database at {path}; create it, or fix the address")
    return {}


def _unstated_ends(definition: WorkflowDefinition) -> list[str]:
    """Returns what an author should look at: gates that end a run without saying how."""
    return [
        f"option {option.label!r} of step {step.name!r} ends the run as rejected; state it with "
        "`ends: rejected`, or `ends: completed` if it is a success"
        for step in definition.steps
        for option in (step.human_gate.options if step.human_gate is not None else ())
        if option.next_step is None and option.ends is None
    ]


def describe_definition(definition: WorkflowDefinition) -> dict[str, Any]:
    """Returns a definition as JSON values, which are stored with every run of it.

    The digest of a run covers them, so another form would strand every run under way.
    """
    database = definition.database
    return {
        "type": definition.type,
        "database": _stored_address(database.url) if database else None,
        "steps": [_describe_step(step) for step in definition.steps],
        "modules": _describe_modules(definition),
    }


def _describe_modules(definition: WorkflowDefinition) -> list[list[str]]:
    checks = [check for step in definition.steps for _, check in step_checks(step)]
    functions = [check for check in checks if callable(check)]
    if not functions:
        return []
    # A worker that can edit the project must not be able to change what a condition proves.
    return describe_modules(functions)


def _stored_address(url: str) -> str:
    """Returns an address without a password, and without a folder, which may be moved."""
    return _PASSWORD.sub(r"\1", url) if "://" in url else PurePath(url).name


def _describe_step(step: WorkflowStep) -> dict[str, Any]:
    command, branch = step.command, step.next
    return {
        "name": step.name,
        "command": describe_code(command) if callable(command) else command and list(command),
        "asks": [step.prompt, step.agent, step.model, step.schema] if step.prompt else None,
        "before": [_describe_condition(each) for each in step.preconditions],
        "after": [_describe_condition(each) for each in step.postconditions],
        "items": step.parallel_key,
        "next": (
            [
                _describe_check(branch.condition),
                branch.on_true,
                branch.on_false,
                branch.max_iterations,
            ]
            if isinstance(branch, ConditionalNext)
            else branch
        ),
    }


def _describe_condition(condition: Condition) -> list[Any]:
    return [condition.name, condition.error, _describe_check(condition.check)]


def _describe_check(check: Check | str) -> Any:
    return describe_code(check) if callable(check) else check


def param_names(definition: WorkflowDefinition) -> frozenset[str] | None:
    """Returns the parameters that a run accepts: those declared, or else those that texts use.

    Returns None if any parameter is accepted: a function or a program gets all of them and may
    use any.
    """
    if definition.params is not None:
        return frozenset(definition.params)
    steps = definition.steps
    checks = [check for step in steps for _, check in step_checks(step)]
    expressions = [check for check in checks if isinstance(check, str)]
    has_code = any(step.command is not None for step in steps) or len(expressions) < len(checks)
    if has_code or any(map(_ALL_PARAMETERS.search, expressions)):
        return None
    names = {name for text in expressions for name in _PARAMETER.findall(text)}
    names |= {name for step in steps for name in _PROMPT_NAME.findall(step.prompt or "")}
    names |= {step.parallel_key.partition(".")[0] for step in steps if step.parallel_key}
    return frozenset(names - {"item", RESULTS})


def _first_names(definition: WorkflowDefinition, start: str) -> frozenset[str]:
    """Returns the parameters that the prompt of the first step needs.

    Later prompts may get their values from earlier steps; for the first, there is nothing else.
    """
    step = next(step for step in definition.steps if step.name == start)
    # A run that lacks one of these would stop at its first prompt, so it is refused before it is
    # stored.
    names = set(_PROMPT_NAME.findall(step.prompt or ""))
    return frozenset(names - {"item"} - checkpoint_of("", "", start, {}).to_json().keys())


def step_checks(step: WorkflowStep) -> Iterator[tuple[KeyPath, Check | str]]:
    """Yields every expression or function of a step, and its key."""
    for key in ("preconditions", "postconditions"):
        for index, condition in enumerate(getattr(step, key)):
            if not condition.query:
                yield (key, index, "check"), condition.check
            for name, text in condition.values.items():
                yield (key, index, "values", name), text
    if isinstance(step.next, ConditionalNext):
        yield ("next", "condition"), step.next.condition


def group_steps(steps: Sequence[WorkflowStep]) -> list[tuple[WorkflowStep, ...]]:
    """Returns consecutive steps that run together as one group, and others as groups of one."""
    groups: list[tuple[WorkflowStep, ...]] = []
    joins = False
    for step in steps:
        joined, joins = joins, step.parallel and step.parallel_key is None
        if joined and joins:
            groups[-1] = (*groups[-1], step)
        else:
            groups.append((step,))
    return groups


def _node_id(group: Sequence[WorkflowStep]) -> str:
    return "+".join(step.name for step in group)


def _node(
    group: tuple[WorkflowStep, ...], contract: ContractRuntime, nodes: Mapping[str, str]
) -> StepDef:
    last, definition = group[-1], contract.definition
    handler: Any
    if len(group) > 1:
        handler = Together(contract, group)
    elif last.parallel_key is not None:
        handler = ForEach(contract, last)
    else:
        handler = Single(contract, last)
    # With a database, the transaction checks the postconditions, and items have their own.
    by_engine = isinstance(handler, Single) and definition.database is None
    checked_after = last.postconditions if by_engine else ()
    return StepDef(
        _node_id(group),
        title=", ".join(step.title for step in group if step.title),
        handler=handler,
        next={} if last.human_gate else _edges(last, definition, nodes),
        preconditions=[
            _condition(contract, step, each) for step in group for each in step.preconditions
        ],
        postconditions=[_condition(contract, last, each) for each in checked_after],
        retries=MAX_RETRIES,
        gate=_gate(last.human_gate, nodes, definition) if last.human_gate else None,
        # Each of several steps or items has a time limit of its own.
        timeout=None if len(group) > 1 or last.parallel_key else last.timeout,
    )


def _condition(
    contract: ContractRuntime, step: WorkflowStep, condition: Condition
) -> EngineCondition:
    check = ConditionCheck(contract, step, condition)
    return EngineCondition(condition.name, check, condition.message)


def _edges(
    step: WorkflowStep, definition: WorkflowDefinition, nodes: Mapping[str, str]
) -> dict[Outcome, str | End | Edge | None]:
    branch = step.next
    if not isinstance(branch, ConditionalNext):
        return {Outcome.OK: _edge(branch, nodes)}
    # The engine knows the outcomes OK and ITERATE, so a branch becomes these two edges. Only the
    # edge that leads back is bounded, because only it can repeat forever.
    back = _back_targets(step, {branch.on_true, branch.on_false}, definition, nodes)
    # The branch that leads back is counted; if neither does, `on_false` is.
    loops_on_true = branch.on_true in back and branch.on_false not in back
    looping = branch.on_true if loops_on_true else branch.on_false
    counted = Edge(
        nodes[looping],
        bound=branch.max_iterations,
        starts_iteration=looping in back,
        on_limit="ask",
        resets=True,
    )
    other = _edge(branch.on_false if loops_on_true else branch.on_true, nodes)
    if loops_on_true:
        return {Outcome.OK: counted, Outcome.ITERATE: other}
    return {Outcome.OK: other, Outcome.ITERATE: counted}


def _back_targets(
    step: WorkflowStep,
    targets: Collection[str],
    definition: WorkflowDefinition,
    nodes: Mapping[str, str],
) -> set[str]:
    """Returns the targets of a branch that lead back to the step, directly or over other steps.

    A target further down counts only if it leads back without a gate, where a human decides.
    """
    here, names = nodes[step.name], list(nodes)
    above = names[: names.index(step.name)]
    back = {target for target in targets if target in above or nodes[target] == here}
    return back or {target for target in targets if here in _reachable(target, definition, nodes)}


def _reachable(start: str, definition: WorkflowDefinition, nodes: Mapping[str, str]) -> set[str]:
    """Returns the nodes that a step leads to without a gate, including its own."""
    # The last step of a group decides what follows, and it overwrites the others here.
    last = {nodes[step.name]: step for step in definition.steps}
    reachable: set[str] = set()
    pending = [nodes[start]]
    while pending:
        node = pending.pop()
        if node in reachable:
            continue
        reachable.add(node)
        branch = last[node].next if last[node].human_gate is None else None
        targets = (
            (branch.on_true, branch.on_false) if isinstance(branch, ConditionalNext) else (branch,)
        )
        pending.extend(nodes[target] for target in targets if target is not None)
    return reachable


def _edge(target: str | None, nodes: Mapping[str, str]) -> Edge | None:
    """Returns an edge that asks a human instead of ending the run if it loops too often."""
    return None if target is None else Edge(nodes[target], on_limit="ask")


def _gate(gate: HumanGate, nodes: Mapping[str, str], definition: WorkflowDefinition) -> Gate:
    fan_outs = [step.name for step in definition.steps if step.parallel_key is not None]
    options = [
        EngineOption(each.label, _option_target(each, nodes), each.requires_input)
        for each in gate.options
    ]
    look_up = partial(shown_value, fan_outs=fan_outs)
    return Gate(gate.prompt, options, tuple(gate.context), look_up=look_up, presence=gate.presence)


def _option_target(option: GateOption, nodes: Mapping[str, str]) -> Edge | End | None:
    if option.next_step is not None:
        return _edge(option.next_step, nodes)
    # Only what is declared a success is one: `run && deploy` must not depend on a label.
    return None if option.ends == "completed" else End.REJECTED


@dataclass(frozen=True)
class ConditionCheck:
    """A condition of a step as the engine calls it, before or after the work."""

    contract: ContractRuntime
    step: WorkflowStep
    condition: Condition

    @property
    def definition(self) -> list[Any]:
        """What the digest of the workflow covers."""
        return _describe_condition(self.condition)

    async def __call__(self, ctx: StepContext) -> bool:
        """Returns whether it holds; after the work, for the step's result."""
        condition = self.condition
        if ctx.result is None:
            return await self.contract.holds(ctx, self.step, condition.check, condition.where)
        output = {"result": ctx.result[COMPLETED][-1]["result"], "hint": ctx.result[HINT]}
        before = replace(ctx, step_state=ctx.state_before)
        return await self.contract.holds(
            before, self.step, condition.check, condition.where, PerformedStep(output)
        )


# The modules of the project that conditions use, for the digest of their definition.
#
# A worker that can edit files could otherwise weaken a helper of a condition, and the run would
# continue as if nothing had changed. The module of a condition counts, with all that it imports
# and these import: each as a whole, without comments and formatting. Installed packages, the
# standard library and signoff itself are left out: a new release of a library is no change of the
# definition.

_OTHERS = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
_SIGNOFF = Path(__file__).parents[1]


def describe_modules(functions: Iterable[Callable[..., Any]]) -> list[list[str]]:
    """Returns the name and the digest of each module of the project that functions use."""
    found: dict[Path, str] = {}
    for function in functions:
        names = getattr(function_of(function), "__globals__", {})
        file, package = names.get("__file__"), names.get("__package__") or ""
        if file:
            path = Path(file)
            # What a module of a package imports is found next to the package.
            folder = path.parents[len(package.split(".")) if package else 0]
            _add(path, package, folder, found)
    # Not by their paths: a project may be moved.
    return sorted([path.name, digest] for path, digest in found.items())


def _add(path: Path, package: str, folder: Path, found: dict[Path, str]) -> None:
    # Modules may import each other in a circle; each is read once.
    if path in found or not _is_of_project(path):
        return
    try:
        tree = parse_module(path.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError):
        return
    # The parsed form is digested, so that comments and formatting may change under a run.
    found[path] = text_digest(ast.unparse(tree))
    for name in _imported(tree, package):
        for module, its_package in _files_of(name, folder):
            _add(module, its_package, folder, found)


def _is_of_project(path: Path) -> bool:
    if path.suffix != ".py" or not {"site-packages", "dist-packages"}.isdisjoint(path.parts):
        return False
    return not any(path.is_relative_to(other) for other in (_SIGNOFF, *_OTHERS))


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Yields the names of everything that a module imports, some of which are no modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            try:
                module = resolve_name(origin, package)
            except ImportError:
                continue
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _files_of(name: str, folder: Path) -> Iterator[tuple[Path, str]]:
    """Yields the file of a module and of each package that it is in, with their packages.

    A file of the folder comes first: the process may know another project's module by the name.
    """
    parts = name.split(".")
    roots = [folder, *_root_of(parts[0])]
    for length in range(1, len(parts) + 1):
        module = ".".join(parts[:length])
        for path in (root.joinpath(*parts[:length]) for root in roots):
            if (path / "__init__.py").is_file():
                yield path / "__init__.py", module
                break
            if path.with_name(f"{path.name}.py").is_file():
                yield path.with_name(f"{path.name}.py"), module.rpartition(".")[0]
                break


def _root_of(name: str) -> Iterator[Path]:
    """Yields the folder in which Python finds a module, without importing it."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return
    if spec is not None and spec.has_location and spec.origin:
        path = Path(spec.origin)
        yield path.parents[1] if spec.submodule_search_locations else path.parent


# The plan of a contract workflow: what performs each step, and which conditions are checked.


def plan(workflow: Workflow) -> DryRunPlan:
    """Returns what performs each step, and which conditions are checked."""
    contract = workflow.source["contract"]
    database, steps = contract["database"], contract["steps"]
    facts = [
        {
            "step": each["name"],
            "worked_by": _worker(each),
            "preconditions": [str(condition[0]) for condition in each["before"]],
            "postconditions": [str(condition[0]) for condition in each["after"]],
        }
        for each in steps
    ]
    rows = [
        (name, by, ", ".join(before) or "-", ", ".join(after) or "-")
        for name, by, before, after in (each.values() for each in facts)
    ]
    note = f"database: {database}; changes are committed only if the conditions hold"
    return DryRunPlan(
        ("STEP", "DONE BY", "BEFORE", "AFTER"),
        rows,
        [note] if database is not None else [],
        {"contract": {"database": database, "steps": facts}},
    )


def asks(workflow: Workflow, _params: Mapping[str, Any]) -> list[Ask]:
    """Returns the agents and roles that a run asks, each with the model that its step names."""
    steps = workflow.source["contract"]["steps"]
    return [Ask(step["asks"][1], step["asks"][2]) for step in steps if step["asks"]]


def _worker(step: Mapping[str, Any]) -> str:
    items = f", for each of {step['items']}" if step["items"] else ""
    match step["command"]:
        case None:
            return f"agent {step['asks'][1]}{items}" if step["asks"] else "a human"
        case [*words]:
            return f"{' '.join(words)}{items}"
        case {"name": name}:
            return f"{name}{items}"
        case other:
            return f"{other}{items}"
