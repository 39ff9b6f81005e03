"""Constraint files: one requirement each, with its rules."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationError

from signoff.core.errors import InvalidWorkflow, Problem
from signoff.core.severity import DEFAULT_SEVERITY
from signoff.documents.files import display_path
from signoff.documents.mistakes import Mistake, format_path, line_of, mistakes_of
from signoff.documents.mistakes import Path as KeyPath
from signoff.documents.sections import FileSection
from signoff.documents.source_file import SourceFile
from signoff.documents.yaml_text import Document
from signoff.review.flow import sections
from signoff.review.pure.constraint import DEFAULT_PRIORITY, Constraint, Rule, SourceBlock

ID = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
ID_WORDS = "letters, digits, _, . and -"
LONGEST_ID = 100
VERSION = 1


class ExamplesSection(sections.FlowSection):
    """Texts that violate and follow a rule."""

    violation: sections.Text = ""
    """A text that violates the rule."""
    compliant: sections.Text = ""
    """A text that follows it."""


class RuleSection(sections.FlowSection):
    """One thing a critic looks for."""

    id: sections.Word = Field(description="a text")
    """The rule's name."""
    text: sections.Word = Field(description="a text")
    """What has to hold."""
    default_severity: sections.SeverityName = DEFAULT_SEVERITY
    """How severe a violation is, if the critic does not say."""
    examples: ExamplesSection = Field(default_factory=ExamplesSection.model_construct)
    """Texts that violate and follow it."""

    def rule(self) -> Rule:
        """Returns the rule that it describes."""
        return Rule(self.id, self.text, self.default_severity, **dict(self.examples))


class ConstraintFile(FileSection, sections.FlowSection):
    """One requirement an artifact must satisfy."""

    misplaced_keys: ClassVar[Mapping[str, str]] = {"description": "it is called `summary` here"}

    version: Literal[1] = Field(1, description="1")
    """The version of the file format."""
    id: str | None = Field(None, pattern=ID, max_length=LONGEST_ID, description=ID_WORDS)
    """The constraint's id; the file's name if it is absent."""
    priority: int = Field(DEFAULT_PRIORITY, ge=0, description="a whole number from 0")
    """1 is the most important."""
    summary: sections.Text = ""
    """What the author of the artifact sees."""
    rules: sections.Many[RuleSection] = Field(
        (), description="a list of {id, text, default_severity, examples}"
    )
    """What critics look for."""
    agents: sections.Agents | None = Field(None, description=sections.AGENTS)
    """The agents that review it."""
    behavior: sections.BehaviorField | None = Field(None, description=sections.BEHAVIORS)
    """What its issues do, by severity."""
    script: str = Field("", description="a path")
    """A program whose output about the artifact the critic gets."""
    source: sections.SourceField | None = Field(None, description=sections.SOURCES)
    """Material that its critics compare the artifact with."""
    paths: sections.Many[sections.Word] = Field(
        (), description='a list of patterns, as in ["docs/**/*.md"]'
    )
    """The files it applies to, if the artifact is a set of files; all if it is absent."""

    def constraint(self, default_id: str = "") -> Constraint:
        """Returns the constraint that it describes."""
        return Constraint(
            id=self.id or default_id,
            priority=self.priority,
            summary=self.summary,
            rules=tuple(rule.rule() for rule in self.rules),
            agents=self.agents,
            behavior=self.behavior,
            script=self.script,
            source=self.source or SourceBlock(),
            paths=self.paths,
        )

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


def inline_constraint(name: str, priority: int, section: sections.InlineConstraint) -> Constraint:
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

    config: sections.ConstraintConfig
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
