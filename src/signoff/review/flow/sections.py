"""The sections that flow, constraint and goal files share, and constraint files.

A constraint file has one requirement with its rules. Flow and goal files are read by `reading`.

Each class is both the model that reads a section of a file and the value that the rest of the
package uses. Where the value belongs to a lower layer, a validator builds it from the section
that describes its form in files.

A field's description says what is valid and appears in error messages. Its docstring says what
the field is for and appears in the JSON Schemas.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    Strict,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from signoff.core.errors import InvalidWorkflow, Problem
from signoff.core.severity import DEFAULT_SEVERITY, SEVERITIES, IssueBehavior, Severity
from signoff.core.spend import Limits
from signoff.documents.files import display_path
from signoff.documents.mistakes import ADVICE, Mistake, format_path, line_of, mistakes_of
from signoff.documents.mistakes import Path as KeyPath
from signoff.documents.sections import FileSection, LimitsSection, Section
from signoff.documents.source_file import SourceFile
from signoff.documents.yaml_text import Document
from signoff.review.pure.constraint import (
    DEFAULT_PRIORITY,
    Constraint,
    ConstraintBehavior,
    Rule,
    SourceBlock,
)

T = TypeVar("T")


def _not_empty(values: tuple[T, ...]) -> tuple[T, ...]:
    if not values:
        raise ValueError(values)
    return values


Many = Annotated[tuple[T, ...], Strict(False)]
"""A list in files. Strict mode would only accept a tuple, which YAML does not have."""
Some = Annotated[
    tuple[T, ...],
    Strict(False),
    # `min_length` would also report a list whose only value is wrong as too short.
    AfterValidator(_not_empty),
    Field(json_schema_extra={"minItems": 1}),
]
"""A list in files with at least one value."""
Text = Annotated[str, Field(description="a text")]
Word = Annotated[str, Field(min_length=1, pattern=r"\S", description="a text that is not empty")]
Paths = Annotated[Many[Word], Field(description="a list of paths")]


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


SeverityName = Annotated[
    Severity, Strict(False), BeforeValidator(_upper), Field(description=f"one of: {SEVERITIES}")
]
"""A severity in upper or lower case."""
AgentName = Annotated[str, Field(min_length=1, pattern=r"\S", description="an agent's name")]
AGENTS = 'a list of agents, as in ["claude", "codex"]'
Agents = Annotated[Some[AgentName], Field(description=AGENTS)]
_WORST, *_, _MILDEST = Severity
BEHAVIORS = f"behaviors by severity, as in {{{_WORST.key}: halt, {_MILDEST.key}: ignore}}"
SOURCES = "files, globs, scripts or inline"


class FlowSection(Section):
    """A section of a file that is also a value: it never changes, and types are not converted.

    Sections that are valid for sure, such as defaults, are created by `model_construct`: the first
    validation by a class builds its validator, and only that of the whole file is needed.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: Any) -> None:
        """Says what is valid for each field that does not say it, because its type does."""
        for field in cls.model_fields.values():
            field.description = field.description or _valid_values(field.annotation)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Takes the purpose of each field from its docstring."""
        reference = handler(schema)
        # One text serves the reader of the code and the user of an editor, so the two cannot
        # disagree.
        fields = handler.resolve_ref_schema(reference)["properties"]
        for base in reversed(cls.__mro__):
            for name, text in _field_docstrings(base):
                if name in fields:
                    fields[name]["title"] = text.removesuffix(".")
        return reference


def _valid_values(annotation: Any) -> str | None:
    """Returns what is valid for a switch, a choice or a section; None for any other type."""
    is_union = get_origin(annotation) in (Union, UnionType)
    kind = get_args(annotation)[0] if is_union else annotation
    if kind is bool:
        return "true or false"
    if get_origin(kind) is Literal:
        return f"one of: {', '.join(map(str, get_args(kind)))}"
    if not (isinstance(kind, type) and issubclass(kind, Section)):
        return None
    *names, last = kind.model_fields
    return f"{', '.join(names)} or {last}" if names else last


def _field_docstrings(kind: type) -> Iterator[tuple[str, str]]:
    """Yields the text below each field of a section. Python drops it, so the source is parsed."""
    if kind is not FlowSection and issubclass(kind, FlowSection):
        for node in ast.walk(ast.parse(inspect.getsource(kind))):
            for field, text in pairwise(node.body if isinstance(node, ast.ClassDef) else ()):
                match field, text:
                    case ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(purpose))):
                        yield ast.unparse(field.target), purpose


class SourceSection(FlowSection):
    """Material to work from."""

    files: Paths = ()
    """Files to read."""
    globs: Many[Word] = Field((), description="a list of patterns")
    """Patterns of files to read."""
    scripts: Many[Word] = Field((), description="a list of commands")
    """Programs whose output is read, where scripts are allowed."""
    inline: Text = ""
    """The material itself."""


Behavior = Annotated[
    Annotated[IssueBehavior, Strict(False)] | None,
    Field(description=f"one of: {', '.join(IssueBehavior)}"),
]


class _BehaviorForm(FlowSection):
    """Accepts keys and values in upper or lower case."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Keeps the titles of the fields; a model made from a list has no docstrings to read."""
        return handler(schema)

    @model_validator(mode="before")
    @classmethod
    def _ignore_case(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        behaviors: dict[str, Any] = {}
        for key, value in raw.items():
            name = str(key).strip().lower()
            # Keys are read in any case, so `High` and `high` could both be there; the later one
            # would win silently.
            if name in behaviors:
                raise PydanticCustomError(ADVICE, "a severity appears twice")
            behaviors[name] = value.strip().lower() if isinstance(value, str) else value
        return behaviors


_BEHAVIOR_FIELDS: dict[str, Any] = {
    each.key: (Behavior, Field(None, title=f"{each} findings")) for each in Severity
}
BehaviorSection = create_model(
    "BehaviorSection",
    __base__=_BehaviorForm,
    __doc__="What findings do, by severity; a missing severity is left to weaker levels.",
    **_BEHAVIOR_FIELDS,
)


class FlowLimits(FlowSection, LimitsSection):
    """Ceilings for one run of a flow."""


def _read_as(
    section: type[Section], value: type[T], build: Callable[[dict[str, Any]], T]
) -> BeforeValidator:
    """Returns a validator that builds a value of a lower layer from its section in a file."""

    def read(raw: Any) -> T:
        if isinstance(raw, value):
            return raw
        return build(section.model_validate(raw).model_dump(exclude_none=True))

    return BeforeValidator(read, json_schema_input_type=section)


SourceField = Annotated[
    SourceBlock, _read_as(SourceSection, SourceBlock, lambda fields: SourceBlock(**fields))
]
BehaviorField = Annotated[
    ConstraintBehavior,
    _read_as(BehaviorSection, ConstraintBehavior, ConstraintBehavior.from_dict),
]
LimitsField = Annotated[Limits, _read_as(FlowLimits, Limits, lambda fields: Limits(**fields))]


class Goal(FlowSection):
    """What to write, and the material for it."""

    goal: Word = Field(description="a text that says what to write")
    """What to write."""
    source: SourceField = Field(default_factory=SourceBlock, description=SOURCES)
    """The material for it."""

    @property
    def text(self) -> str:
        """What to write."""
        return self.goal


def _or_text(section: type[FlowSection], key: str) -> BeforeValidator:
    """Returns a validator that accepts a text in the place of a section with just one key."""

    def read(raw: Any) -> Any:
        if not isinstance(raw, str):
            return raw
        if not raw.strip():
            raise ValueError(raw)
        return section.model_construct(None, **{key: raw})

    return BeforeValidator(read, json_schema_input_type=Word | section)


GoalField = Annotated[Goal, _or_text(Goal, "goal")]
"""A goal's text, or a mapping with its material."""


class RoutingRule(FlowSection):
    """Assigns agents to constraints whose id matches a glob."""

    match: Word = Field(description="a pattern over constraint ids")
    """The constraints."""
    agents: Agents
    """The agents that review them."""


class PriorityRoute(FlowSection):
    """Assigns agents to constraints in a range of priorities."""

    range: Annotated[tuple[int, int], Strict(False)] = Field(
        description="two whole numbers, the smaller one first, as in [1, 3]"
    )
    """The priorities, both ends included."""
    agents: Agents
    """The agents that review them."""

    @field_validator("range")
    @classmethod
    def _rises(cls, value: tuple[int, int]) -> tuple[int, int]:
        if value[0] > value[1]:
            raise ValueError(value)
        return value


class RoutingConfig(FlowSection):
    """The agents of each constraint, where neither the step nor the constraint names any."""

    default_agents: Many[AgentName] = Field((), description=AGENTS)
    """The agents that review everything else."""
    rules: Many[RoutingRule] = Field((), description="a list of {match, agents}")
    """The agents by constraint id; the first match wins."""
    priority_routing: Many[PriorityRoute] = Field((), description="a list of {range, agents}")
    """The agents by priority; the first match wins."""


class InlineConstraint(FlowSection):
    """A constraint with one rule, in the flow file itself."""

    misplaced_keys: ClassVar[Mapping[str, str]] = {"description": "it is called `summary` here"}

    summary: Word = Field(description="a sentence")
    """What has to hold."""
    agents: Agents | None = Field(None, description=AGENTS)
    """The agents that review it."""
    severity: SeverityName = DEFAULT_SEVERITY
    """How severe a violation is, if the critic does not say."""


InlineField = Annotated[InlineConstraint, _or_text(InlineConstraint, "summary")]
"""A sentence, or a mapping that also names agents and a severity."""


class ConstraintConfig(FlowSection):
    """Where the constraints are, and which agents review them."""

    dir: Word | None = Field(None, description="the path of a folder")
    """A folder of constraint files."""
    files: Paths = ()
    """Constraint files, used before those of the folder."""
    inline: dict[str, InlineField] = Field(
        default_factory=dict,
        description="a sentence, or {summary, agents, severity}, by constraint id, as in "
        "{short: No sentence is long.}",
    )
    """Constraints with one rule each."""
    routing: RoutingConfig = Field(default_factory=RoutingConfig.model_construct)
    """The agents of each constraint."""


ID = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
ID_WORDS = "letters, digits, _, . and -"
LONGEST_ID = 100
VERSION = 1


class ExamplesSection(FlowSection):
    """Texts that violate and follow a rule."""

    violation: Text = ""
    """A text that violates the rule."""
    compliant: Text = ""
    """A text that follows it."""


class RuleSection(FlowSection):
    """One thing a critic looks for."""

    id: Word = Field(description="a text")
    """The rule's name."""
    text: Word = Field(description="a text")
    """What has to hold."""
    default_severity: SeverityName = DEFAULT_SEVERITY
    """How severe a violation is, if the critic does not say."""
    examples: ExamplesSection = Field(default_factory=ExamplesSection.model_construct)
    """Texts that violate and follow it."""

    def rule(self) -> Rule:
        """Returns the rule that it describes."""
        return Rule(self.id, self.text, self.default_severity, **dict(self.examples))


class ConstraintFile(FileSection, FlowSection):
    """One requirement an artifact must satisfy."""

    misplaced_keys: ClassVar[Mapping[str, str]] = {"description": "it is called `summary` here"}

    version: Literal[1] = Field(1, description="1")
    """The version of the file format."""
    id: str | None = Field(None, pattern=ID, max_length=LONGEST_ID, description=ID_WORDS)
    """The constraint's id; the file's name if it is absent."""
    priority: int = Field(DEFAULT_PRIORITY, ge=0, description="a whole number from 0")
    """1 is the most important."""
    summary: Text = ""
    """What the author of the artifact sees."""
    rules: Many[RuleSection] = Field(
        (), description="a list of {id, text, default_severity, examples}"
    )
    """What critics look for."""
    agents: Agents | None = Field(None, description=AGENTS)
    """The agents that review it."""
    behavior: BehaviorField | None = Field(None, description=BEHAVIORS)
    """What its issues do, by severity."""
    script: str = Field("", description="a path")
    """A program whose output about the artifact the critic gets."""
    source: SourceField | None = Field(None, description=SOURCES)
    """Material that its critics compare the artifact with."""
    paths: Many[Word] = Field((), description='a list of patterns, as in ["docs/**/*.md"]')
    """The files it applies to, if the artifact is a set of files; all if it is absent."""

    def constraint(self, default_id: str = "") -> Constraint:
        """Returns the constraint that it describes."""
        rules, source = tuple(rule.rule() for rule in self.rules), self.source or SourceBlock()
        values = {**dict(self), "id": self.id or default_id, "rules": rules, "source": source}
        del values["version"]
        return Constraint(**values)

    def contradictions(self) -> Iterator[Mistake]:
        """Yields what is wrong although each key by itself is valid."""
        try:
            shlex.split(self.script)
        except ValueError as error:
            what = f"script is not a valid command: {error}"
            yield Mistake(("script",), what, "close its quotes")
        ids = [rule.id for rule in self.rules]
        for position, name in enumerate(ids):
            first = ids.index(name)
            if first != position:
                what = f"rules[{position}].id is {name!r}, as is rules[{first}].id"
                yield Mistake(("rules", position, "id"), what, "give each rule its own id")


def load_constraints(where: Path | str | Iterable[Path | str]) -> list[Constraint]:
    """Returns the constraints of a folder or of files, in the order of definition.

    Raises `InvalidWorkflow` with every problem of every file.
    """
    problems: list[Problem] = []
    paths = [where] if isinstance(where, Path | str) else list(where)
    files = [file for path in paths for file in constraint_files(Path(path), problems)]
    constraints = read_constraints(files, problems, [])
    if problems:
        raise InvalidWorkflow("constraints", problems)
    return constraints


def constraint_files(path: Path, problems: list[Problem]) -> list[Path]:
    """Returns the constraint files of a folder, sorted by name; or the file itself."""
    if not path.is_dir():
        return [path]
    try:
        files = [file for file in path.iterdir() if file.suffix.lower() in (".yaml", ".yml")]
    except OSError as error:
        problems.append(Problem(display_path(path), f"cannot be read: {error.strerror or error}"))
        return []
    return sorted(file for file in files if not file.name.startswith("."))


def read_constraints(
    files: Iterable[Path], problems: list[Problem], warnings: list[Problem]
) -> list[Constraint]:
    """Returns the constraints of files; adds mistakes and what is merely odd."""
    constraints: dict[str, tuple[Path, Constraint]] = {}
    for file in files:
        constraint = _read_file(file, problems, warnings)
        if constraint is None:
            continue
        # Findings are stored under the id of their constraint: two constraints with one id would
        # share their findings, dismissals included.
        first, _ = constraints.setdefault(constraint.id, (file, constraint))
        if first is not file:
            what = f"the id {constraint.id!r} is taken by {display_path(first)}"
            remedy = "give each constraint its own id"
            problems.append(Problem(display_path(file), what, remedy))
    return [constraint for _file, constraint in constraints.values()]


def constraint_from_dict(raw: Mapping[str, Any]) -> Constraint:
    """Reads a constraint as it is in YAML; raises `InvalidWorkflow` with every problem."""
    problems: list[Problem] = []
    name = str(raw.get("id", "constraint"))
    fields = _checked(raw, lambda _path: name, problems)
    if fields is not None and not fields.id:
        problems.append(Problem(name, "id is missing", ID_WORDS))
    if fields is None or problems:
        raise InvalidWorkflow(name, problems)
    return fields.constraint()


def inline_constraint(name: str, priority: int, section: InlineConstraint) -> Constraint:
    """Returns the constraint with one rule that a flow file has."""
    rule = Rule(name, section.summary, section.severity)
    return Constraint(name, priority, section.summary, (rule,), agents=section.agents)


def is_id(name: str) -> bool:
    """Tells whether a name can be the id of a constraint."""
    return re.match(ID, name) is not None and len(name) <= LONGEST_ID


def _read_file(file: Path, problems: list[Problem], warnings: list[Problem]) -> Constraint | None:
    name = display_path(file)
    document = SourceFile(file).mapping(problems, "fields", VERSION)
    if document is None:
        return None
    own: list[Problem] = []
    fields = _checked(document.content, document.at, own)
    # The name of the file is the id unless the file has one, and ids become parts of file names,
    # prompts and answers of judges.
    if fields is not None and fields.id is None and not is_id(file.stem):
        what = f"the file name {file.stem!r} is not a valid id"
        own.append(Problem(name, what, "add id: to the file"))
    problems.extend(sorted(own, key=line_of))
    if fields is None or own:
        return None
    if not fields.summary.strip() and not fields.rules:
        warnings.append(Problem(name, "has neither a summary nor rules"))
    return fields.constraint(file.stem)


def _checked(
    raw: Mapping[str, Any], at: Callable[[KeyPath], str], problems: list[Problem]
) -> ConstraintFile | None:
    try:
        fields = ConstraintFile.model_validate(dict(raw))
    except ValidationError as error:
        problems.extend(m.problem(at) for m in mistakes_of(error, ConstraintFile))
        return None
    contradictions = list(fields.contradictions())
    problems.extend(mistake.problem(at) for mistake in contradictions)
    return None if contradictions else fields


@dataclass(frozen=True)
class ConstraintLookup:
    """Where a flow's constraints are looked for, and where problems are collected."""

    config: ConstraintConfig
    folders: Sequence[Path]
    """Where relative paths may start, in this order."""
    home: Path | None
    """The project's `.signoff/`; its constraints are used by flows that name none."""
    document: Document
    problems: list[Problem]
    warnings: list[Problem]

    def constraints(self) -> list[Constraint]:
        """Returns the constraints in the order of definition."""
        paths = list(self._files())
        folder = self._folder()
        if folder is not None:
            paths += constraint_files(folder, self.problems)
        # A file that is named and also lies in the folder is read once, at its first place.
        unique = {path.resolve(): path for path in reversed(paths)}
        files = [path for path in paths if unique.pop(path.resolve(), None) is not None]
        constraints = read_constraints(files, self.problems, self.warnings)
        return [*constraints, *self._inline({constraint.id for constraint in constraints})]

    def _files(self) -> Iterator[Path]:
        for position, name in enumerate(self.config.files):
            path = self._find(name)
            if path is not None and not path.is_dir():
                yield path
            else:
                self._report_missing(("constraints", "files", position), name, "file")

    def _folder(self) -> Path | None:
        if self.config.dir is None:
            # A flow that has constraints of its own means these and no others.
            own = self.config.files or self.config.inline
            default = self.home / "constraints" if self.home and not own else None
            return default if default is not None and default.is_dir() else None
        folder = self._find(self.config.dir)
        if folder is not None and folder.is_dir():
            return folder
        self._report_missing(("constraints", "dir"), self.config.dir, "folder")
        return None

    def _inline(self, taken: set[str]) -> Iterator[Constraint]:
        for position, (name, section) in enumerate(self.config.inline.items()):
            path = ("constraints", "inline", name)
            if not is_id(name):
                self._report(path, f"constraints.inline has the id {name!r:.60}", ID_WORDS)
            elif name in taken:
                what = f"the id {name!r} is taken by a constraint file"
                self._report(path, what, "give each constraint its own id")
            else:
                yield inline_constraint(name, position + 1, section)

    def _find(self, name: str) -> Path | None:
        paths = (folder / name for folder in self.folders)
        return next((path for path in paths if path.exists()), None)

    def _report_missing(self, path: KeyPath, name: str, kind: str) -> None:
        folders = dict.fromkeys(display_path(folder) for folder in self.folders)
        what = f"{format_path(path)} is {name!r}, but there is no such {kind}"
        self._report(path, what, f"searched {' and '.join(folders)}")

    def _report(self, path: KeyPath, what: str, remedy: str) -> None:
        self.problems.append(Mistake(path, what, remedy).problem(self.document.at))
