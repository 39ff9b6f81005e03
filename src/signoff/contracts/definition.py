"""Checks definitions as a whole, one small function per rule, and compiles them.

They come from Python or from a contract file. Every problem is reported at once, with its place.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from signoff.contracts.checkpoint import RESULTS, is_result_name
from signoff.contracts.compile import compile_definition, group_steps, step_checks
from signoff.contracts.contract_file import (
    VERSION,
    ContractFile,
    Locate,
    PythonDefinition,
    read_definition,
    snake_case,
    to_plain_values,
)
from signoff.contracts.database import check_address, query_problem, with_absolute_paths
from signoff.contracts.expressions import BadExpression, parse_expression
from signoff.contracts.model import (
    Check,
    Condition,
    ConditionalNext,
    Database,
    WorkflowDefinition,
    WorkflowStep,
)
from signoff.contracts.work import VARIABLE, StepContext
from signoff.core.errors import ConfigError, InvalidWorkflow, Problem
from signoff.core.workflow import Workflow
from signoff.documents.mistakes import Path as KeyPath
from signoff.documents.mistakes import format_path, line_of
from signoff.documents.python_files import extend_import_path
from signoff.documents.source_file import SourceFile
from signoff.documents.yaml_text import Document
from signoff.notation import CompileContext

RESULT_NAMES = frozenset({"rows", "value"})
"""What the expression can use in addition: all rows, and the first column of the first row."""


@dataclass(frozen=True)
class QueryCheck:
    """The function of such a condition."""

    query: str
    check: str
    values: Mapping[str, str] = field(default_factory=dict)
    """An expression for each `:name` in the query."""

    @property
    def definition(self) -> list[Any]:
        """What the digest of the workflow covers."""
        return ["query", self.query, self.check, dict(self.values)]

    def __call__(self, ctx: StepContext) -> bool:
        """Returns whether the expression is true for what the query returns."""
        rows = [_plain(row) for row in ctx.db.query(self.query, self._parameters(ctx))]
        value = next(iter(rows[0].values()), None) if rows else None
        expression = parse_expression(self.check, RESULT_NAMES)
        values = {**ctx.values(expression), "rows": rows, "value": value}
        return expression.holds(values, ctx.checkpoint.own_results)

    def _parameters(self, ctx: StepContext) -> dict[str, Any]:
        # The values are bound as parameters. A result is text from a model, and never part of the
        # SQL.
        parsed = {name: parse_expression(text) for name, text in self.values.items()}
        own = ctx.checkpoint.own_results
        return {name: each.evaluate(ctx.values(each), own) for name, each in parsed.items()}


def as_query_check(condition: Condition) -> QueryCheck:
    """Returns the function of a condition with a query."""
    return QueryCheck(condition.query, str(condition.check), dict(condition.values))


def query_problems(condition: Condition, database: Database | None) -> Iterator[str]:
    """Yields what is wrong about a condition with a query; its values are checked elsewhere."""
    if not condition.query:
        if condition.values:
            yield "values without a query; they are for its :names"
        return
    if database is None:
        yield "a query needs a database; name it at the top: `database: FILE`"
        return
    if problem := query_problem(condition.query, database):
        yield problem
    try:
        parse_expression(str(condition.check), RESULT_NAMES)
    except BadExpression as error:
        yield str(error)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Any:
    """Returns a value of the database as expressions know it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case Mapping():
            return {str(key): _plain_value(each) for key, each in value.items()}
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [_plain_value(each) for each in value]
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
    return str(value)


_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

_LocateKey = Callable[..., str]
"""Returns the location of a key of one step."""


def define_workflow(
    definition: WorkflowDefinition | Mapping[str, Any],
    *,
    commands: Mapping[str, Callable[..., Any]] | None = None,
) -> Workflow:
    """Returns the workflow of a definition; raises `InvalidWorkflow` with every problem.

    Keys may be written in snake case (`initial_step`) or camel case (`initialStep`). `commands`
    are functions that steps can use by name. The path of a database is relative to the folder
    of the file that calls this, from whatever folder the run is resumed.
    """
    raw = to_plain_values(definition, drop_empty=True)
    if not isinstance(raw, dict):
        problem = Problem("workflow", f"is {definition!r:.60}", "a mapping or a WorkflowDefinition")
        raise InvalidWorkflow("contract", [problem])

    caller = _caller()
    at = f"{caller[0].name}:{caller[1]}: " if caller else ""

    def locate(path: KeyPath) -> str:
        # There is no file to point into, so steps are located by their names.
        match path:
            case ("steps", int() as index, *rest) if isinstance(raw["steps"][index], dict):
                name = raw["steps"][index].get("name")
                return format_path((f"step {name!r}", *rest) if name is not None else path)
        return format_path(path)

    # The shape is checked first: rules about how steps fit together would only repeat a missing
    # name in other words.
    read, mistakes = read_definition(raw, PythonDefinition)
    problems = [
        Problem(
            locate(each.path), each.what.replace(f"{format_path(each.path[:2])}.", ""), each.remedy
        )
        for each in mistakes
    ]
    if read is None:
        raise InvalidWorkflow("contract", problems)
    read = replace(read, commands={**read.commands, **(commands or {})})
    problems.extend(find_problems(read, locate))
    if problems:
        raise InvalidWorkflow(read.type, problems)
    folder = caller[0].parent if caller else Path.cwd()
    database = read.database and with_absolute_paths(read.database, folder)
    return compile_definition(
        resolve_functions(replace(read, database=database), lambda path: at + locate(path))
    )


def _caller() -> tuple[Path, int] | None:
    """Returns the file and the line that call `define_workflow`; None at a prompt."""
    # Two frames up are this function and `define_workflow`. A helper of the author's own that calls
    # it counts as the file of the definition.
    frame = sys._getframe(2)
    file = frame.f_globals.get("__file__")
    return (Path(file).resolve(), frame.f_lineno) if file else None


def find_problems(definition: WorkflowDefinition, locate: Locate) -> Iterator[Problem]:
    """Yields everything that does not fit together in a definition of the right shape."""
    names = [step.name for step in definition.steps]
    for name, count in Counter(names).items():
        if count > 1:
            where = locate(("steps", names.index(name), "name"))
            yield Problem(where, f"{count} steps have the name {name!r}", "give each its own")
    start = definition.initial_step
    if start is not None and start not in names:
        what = f"initial_step is the unknown step {start!r}"
        yield Problem(locate(("initial_step",)), what, _one_of(names))
    yield from _database_problems(definition.database, locate)
    yield from _group_problems(definition, locate)
    functions = FunctionsByName(definition.commands)
    for index, step in enumerate(definition.steps):
        yield from _query_problems(step, definition.database, index, locate)
        yield from _step_problems(
            step, names, functions, lambda *keys, i=index: locate(("steps", i, *keys))
        )


def _query_problems(
    step: WorkflowStep, database: Database | None, index: int, locate: Locate
) -> Iterator[Problem]:
    for key in ("preconditions", "postconditions"):
        for number, condition in enumerate(getattr(step, key)):
            for what in query_problems(condition, database):
                yield Problem(locate(("steps", index, key, number, "query")), what)


def _database_problems(database: Database | None, locate: Locate) -> Iterator[Problem]:
    if database is None:
        return
    where = locate(("database",))
    try:
        path = check_address(database.url)
    except ConfigError as error:
        yield Problem(where, str(error))
        return
    if path is None and database.backup:
        what = "signoff does not back up a PostgreSQL database"
        yield Problem(where, what, "leave out backup: true, and use pg_dump")


def _group_problems(definition: WorkflowDefinition, locate: Locate) -> Iterator[Problem]:
    """Yields gates and branches in steps that run together, except in the last of them."""
    # A group becomes one node of the engine's graph, and a node has one gate and one branch.
    for group in group_steps(definition.steps):
        last = group[-1]
        allowed = {None, last.next, *(step.name for step in group)}
        for step in group[:-1]:
            index = definition.steps.index(step)
            what = (
                f"step {step.name!r} runs together with {last.name!r}, which decides what follows"
            )
            if step.human_gate is not None:
                yield Problem(locate(("steps", index, "human_gate")), what, "put the gate there")
            if isinstance(step.next, ConditionalNext) or step.next not in allowed:
                yield Problem(locate(("steps", index, "next")), what, "put `next` there")


def _step_problems(
    step: WorkflowStep, names: Sequence[str], functions: FunctionsByName, locate: _LocateKey
) -> Iterator[Problem]:
    yield from _command_problems(step, functions, locate)
    yield from _schema_problems(step, locate)
    for keys, check in step_checks(step):
        yield from _check_problems(check, functions, names, locate(*keys))
    for keys, name in _result_names(step):
        if not any(f"{name}.".startswith(f"{each}.") for each in names):
            what = f"{RESULTS}.{name} is a result of an unknown step"
            yield Problem(locate(*keys), what, _one_of(names))
    yield from _option_problems(step, locate)
    for keys, target in _targets(step):
        if target is not None and target not in names:
            what = f"{format_path(keys)} is the unknown step {target!r}"
            yield Problem(locate(*keys), what, _one_of(names))
    if step.parallel_key is not None and not step.parallel:
        what = "parallel_key without parallel: true"
        yield Problem(locate("parallel_key"), what, "add parallel: true")


def _option_problems(step: WorkflowStep, locate: _LocateKey) -> Iterator[Problem]:
    options = step.human_gate.options if step.human_gate is not None else ()
    labels = Counter(option.label for option in options)
    for index, option in enumerate(options):
        if labels[option.label] > 1:
            what = f"{labels[option.label]} options have the label {option.label!r}"
            yield Problem(
                locate("human_gate", "options", index, "label"), what, "give each its own"
            )


def _targets(step: WorkflowStep) -> Iterator[tuple[KeyPath, str | None]]:
    """Yields every step that may follow a step, and the key that names it."""
    if isinstance(step.next, ConditionalNext):
        yield ("next", "on_true"), step.next.on_true
        yield ("next", "on_false"), step.next.on_false
    else:
        yield ("next",), step.next
    for index, option in enumerate(step.human_gate.options if step.human_gate is not None else ()):
        yield ("human_gate", "options", index, "next_step"), option.next_step


def _command_problems(
    step: WorkflowStep, functions: FunctionsByName, locate: _LocateKey
) -> Iterator[Problem]:
    command = step.command
    if command is not None and step.prompt:
        yield Problem(locate("prompt"), "has a command and a prompt", "use one of them")
    if command is None and not step.prompt and step.human_gate is None:
        yield Problem(locate(), f"step {step.name!r} does nothing", "a command, a prompt or a gate")
    if not isinstance(command, str):
        return
    if functions.is_name(command):
        yield from functions.problems(command, locate("command"), "command")
        return
    program = f"a program is a list: [{', '.join(command.split())}]"
    remedy = "; ".join(filter(None, (functions.valid_names, program)))
    yield Problem(locate("command"), f"unknown command {command!r}", remedy)


def _schema_problems(step: WorkflowStep, locate: _LocateKey) -> Iterator[Problem]:
    if step.schema is None:
        return
    from jsonschema import Draft202012Validator, SchemaError

    try:
        # Otherwise the first answer would be paid for before anybody learns that nothing can match.
        Draft202012Validator.check_schema(dict(step.schema))
    except SchemaError as error:
        what = f"not a valid JSON Schema, at {error.json_path}: {error.message:.200}"
        yield Problem(locate("schema"), what)


def _result_names(step: WorkflowStep) -> Iterator[tuple[KeyPath, str]]:
    """Yields what a step reads as `results.<step>.<key>`, without `results.`, and its key."""
    names: list[tuple[KeyPath, str]] = [
        (("prompt",), name) for name in VARIABLE.findall(step.prompt or "")
    ]
    if step.parallel_key is not None:
        names.append((("parallel_key",), step.parallel_key))
    if step.human_gate is not None:
        names += [
            (("human_gate", "context", index), name)
            for index, name in enumerate(step.human_gate.context)
        ]
    for keys, name in names:
        if is_result_name(name):
            yield keys, name.removeprefix(f"{RESULTS}.")


def _check_problems(
    check: Check | str, functions: FunctionsByName, steps: Sequence[str], where: str
) -> Iterator[Problem]:
    if not isinstance(check, str):
        return
    if functions.is_name(check):
        yield from functions.problems(check, where, "condition")
        return
    try:
        read = parse_expression(check).result_steps
    except BadExpression as error:
        yield Problem(where, str(error))
        return
    for name in sorted(read - set(steps)):
        what = f"{check!r}: {RESULTS}.{name} is a result of an unknown step"
        yield Problem(where, what, _one_of(steps))


def resolve_functions(definition: WorkflowDefinition, locate: Locate) -> WorkflowDefinition:
    """Returns a definition without problems, with functions in place of their names.

    Expressions get their locations, for errors that only a run can show.
    """
    # Names are looked up once, here. A run that looked them up again for each attempt could meet a
    # module that a worker has edited meanwhile.
    functions = FunctionsByName(definition.commands)

    def resolve(value: Any) -> Any:
        named = isinstance(value, str) and functions.is_name(value)
        return functions.look_up(value) if named else value

    def resolve_all(index: int, key: str) -> tuple[Condition, ...]:
        conditions: Sequence[Condition] = getattr(definition.steps[index], key)
        return tuple(
            replace(
                each,
                check=as_query_check(each) if each.query else resolve(each.check),
                where=locate(("steps", index, key, number, "check")),
            )
            for number, each in enumerate(conditions)
        )

    def resolve_step(index: int, step: WorkflowStep) -> WorkflowStep:
        branch = step.next
        if isinstance(branch, ConditionalNext):
            where = locate(("steps", index, "next", "condition"))
            branch = replace(branch, condition=resolve(branch.condition), where=where)
        return replace(
            step,
            command=resolve(step.command),
            preconditions=resolve_all(index, "preconditions"),
            postconditions=resolve_all(index, "postconditions"),
            next=branch,
        )

    steps = tuple(resolve_step(index, step) for index, step in enumerate(definition.steps))
    return replace(definition, steps=steps)


@dataclass(frozen=True)
class FunctionsByName:
    """Finds functions by their registered name, or by `package.module:function`."""

    commands: Mapping[str, Callable[..., Any]]

    def is_name(self, text: str) -> bool:
        """Whether a text is the name of a function and nothing else."""
        return text in self.commands or _IMPORT_PATH.fullmatch(text) is not None

    def look_up(self, text: str) -> Any:
        """Returns what has this name, and raises whatever importing it raises."""
        # Their author chose these names for this definition, so they come before any module.
        if text in self.commands:
            return self.commands[text]
        module, _, name = text.partition(":")
        extend_import_path(module)
        return getattr(import_module(module), name)

    def problems(self, text: str, where: str, what: str) -> Iterator[Problem]:
        """Yields why no function has this name; `what` is the use of the function."""
        try:
            function = self.look_up(text)
        except Exception as error:  # noqa: BLE001  # a module may raise anything while it is imported
            reason = f"{type(error).__name__}: {error}"
            message = f"the {what} {text!r} cannot be loaded: {reason}"
            yield Problem(where, message, self.valid_names)
            return
        if not callable(function):
            yield Problem(where, f"the {what} {text!r} is not a function")

    @property
    def valid_names(self) -> str:
        """The registered names for messages; empty if there are none."""
        return f"valid: {', '.join(self.commands)}" if self.commands else ""


def _one_of(names: Sequence[str]) -> str:
    return f"one of: {', '.join(names)}"


def compile_file(file: SourceFile, context: CompileContext) -> Workflow:
    """Returns the workflow of a contract file; raises `InvalidWorkflow` with every problem.

    The database's path is relative to the project's folder, and programs run there.
    """
    document, definition = _read(file, context.agent_names)
    definition = _with_default_agent(definition, document, context.default_agent)
    definition = resolve_functions(definition, partial(_locate, document))
    database = definition.database
    located = replace(
        definition,
        database=database and with_absolute_paths(database, context.root),
        folder=str(context.root),
    )
    try:
        # The description has the paths as written, so that a moved project can resume its runs.
        return compile_definition(located, described=definition, source={"given": context.stored})
    except InvalidWorkflow as error:
        problems = [_with_line(each, definition, document) for each in error.problems]
        raise InvalidWorkflow(file.name, problems) from None


def _read(
    file: SourceFile, agent_names: Collection[str] | None
) -> tuple[Document, WorkflowDefinition]:
    problems: list[Problem] = []
    definition: WorkflowDefinition | None = None
    document = file.mapping(problems, "settings of a contract workflow", VERSION)
    if document is not None:
        locate = partial(_locate, document)
        definition, mistakes = read_definition(to_plain_values(document.content), ContractFile)
        problems += [mistake.problem(locate) for mistake in mistakes]
        if definition is not None:
            problems += find_problems(definition, locate)
            problems += _unknown_agents(definition, locate, agent_names)
    if document is None or definition is None or problems:
        raise InvalidWorkflow(file.name, sorted(dict.fromkeys(problems), key=line_of))
    return document, definition


def _locate(document: Document, path: KeyPath) -> str:
    """Returns the line of a key, which the author may have written in camel case."""
    written: list[str | int] = []
    node = document.content
    for part in path:
        key = part
        if isinstance(node, dict):
            key = next((each for each in node if snake_case(each) == part), part)
            node = node.get(key)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        written.append(key)
    return document.at(tuple(written))


def _unknown_agents(
    definition: WorkflowDefinition, locate: Locate, known: Collection[str] | None
) -> Iterator[Problem]:
    """Yields names of agents that do not exist, before any other agent is paid."""
    names: list[tuple[KeyPath, str]] = [
        (("roles", role), agent) for role, agent in definition.roles.items()
    ]
    names += [
        (("steps", index, "agent"), step.agent)
        for index, step in enumerate(definition.steps)
        if step.prompt and step.agent not in (WorkflowStep.agent, *definition.roles)
    ]
    for path, agent in names:
        if known is not None and agent not in known:
            what = f"{format_path(path)} is the unknown agent {agent!r}"
            yield Problem(locate(path), what, f"valid: {', '.join(sorted(known))}")


def _with_default_agent(
    definition: WorkflowDefinition, document: Document, agent: str
) -> WorkflowDefinition:
    """Returns the definition with the default agent in steps whose prompt names no agent."""
    raw_steps = document.content["steps"]
    steps = tuple(
        replace(step, agent=agent) if agent and step.prompt and "agent" not in raw else step
        for step, raw in zip(definition.steps, raw_steps, strict=True)
    )
    return replace(definition, steps=steps)


def _with_line(problem: Problem, definition: WorkflowDefinition, document: Document) -> Problem:
    """Returns a problem of a step, or of several that run together, with its line."""
    first = problem.step.partition("+")[0]
    names = [step.name for step in definition.steps]
    path: KeyPath = ("steps", names.index(first)) if first in names else ("steps",)
    return Problem(document.at(path), f"{problem.where}: {problem.what}", problem.remedy)
