"""Constraint files: one requirement each, with its rules."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from signoff.documents.files import display_path, read_text
from signoff.documents.mistakes import Mistake, line_of, mistakes_of
from signoff.documents.sections import FileSection
from signoff.documents.yaml_text import newer_version, read_mapping
from signoff.errors import InvalidWorkflow, Problem
from signoff.flows.judging_file import SeverityName
from signoff.flows.sections import (
    AGENTS,
    BEHAVIORS,
    SOURCES,
    TEXT,
    Agents,
    BehaviorField,
    FlowSection,
    Many,
    SourceField,
    Word,
)
from signoff.review.constraint import DEFAULT_PRIORITY, Constraint, Rule, SourceBlock
from signoff.review.severity import SEVERITIES, Severity

ID = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
ID_WORDS = "letters, digits, _, . and -"
VERSION = 1


class ExamplesSection(FlowSection):
    """Texts that violate and follow a rule."""

    violation: str = Field("", title="A text that violates the rule", description=TEXT)
    compliant: str = Field("", title="A text that follows it", description=TEXT)


class RuleSection(FlowSection):
    """One thing a critic looks for."""

    id: Word = Field(title="The rule's name", description=TEXT)
    text: Word = Field(title="What has to hold", description=TEXT)
    default_severity: SeverityName = Field(
        Severity.HIGH,
        title="How bad breaking it is, where the critic does not say",
        description=f"one of: {SEVERITIES}",
    )
    examples: ExamplesSection = Field(
        default_factory=ExamplesSection,
        title="Texts that violate and follow it",
        description="violation and compliant",
    )

    def value(self) -> Rule:
        """Returns it as a value."""
        examples = self.examples.model_dump()
        return Rule(self.id, self.text, self.default_severity, **examples)


class ConstraintFile(FileSection, FlowSection):
    """One requirement an artifact must satisfy."""

    version: Literal[1] = Field(1, title="The form of this file", description="1")
    id: str | None = Field(
        None,
        pattern=ID,
        max_length=100,
        title="The constraint's id; the file's name otherwise",
        description=ID_WORDS,
    )
    priority: int = Field(
        DEFAULT_PRIORITY,
        ge=0,
        title="1 is the most important",
        description="a whole number from 0",
    )
    summary: str = Field("", title="What the author of the artifact sees", description=TEXT)
    rules: Many[RuleSection] = Field(
        (),
        title="What critics look for",
        description="a list of {id, text, default_severity, examples}",
    )
    agents: Agents | None = Field(None, title="Who reviews it", description=AGENTS)
    behavior: BehaviorField | None = Field(
        None, title="What its issues do, by severity", description=BEHAVIORS
    )
    script: str = Field(
        "",
        title="A program whose output about the artifact the critic gets",
        description="a path",
    )
    source: SourceField | None = Field(
        None,
        title="Material its critics compare the artifact with",
        description=SOURCES,
    )
    sources: Many[Word] | None = Field(
        None,
        deprecated=True,
        title="The older form of source.files",
        description="a list of paths",
    )

    @property
    def older_sources(self) -> tuple[str, ...] | None:
        """The files under the deprecated key `sources`."""
        # Reading the field itself would warn the program about what the user wrote.
        files: tuple[str, ...] | None = self.__dict__["sources"]
        return files

    def value(self, default_id: str) -> Constraint:
        """Returns it as a value."""
        return Constraint(
            id=self.id or default_id,
            priority=self.priority,
            summary=self.summary,
            rules=tuple(rule.value() for rule in self.rules),
            agents=self.agents,
            behavior=self.behavior,
            script=self.script,
            source=self.source or SourceBlock(files=self.older_sources or ()),
        )

    def contradictions(self) -> list[Mistake]:
        """Returns what is wrong though every key by itself is right."""
        found = []
        if self.source is not None and self.older_sources is not None:
            what = "both source and sources are there"
            found.append(Mistake(("sources",), what, "keep one of them"))
        try:
            shlex.split(self.script)
        except ValueError as error:
            found.append(Mistake(("script",), f"script is no command: {error}", "close its quotes"))
        seen: dict[str, int] = {}
        for position, rule in enumerate(self.rules):
            first = seen.setdefault(rule.id, position)
            if first != position:
                what = f"rules[{position}].id is {rule.id!r}, as is rules[{first}].id"
                found.append(Mistake(("rules", position, "id"), what, "an id of its own"))
        return found


def load_constraints(where: Path | str | Iterable[Path | str]) -> list[Constraint]:
    """Returns the constraints of a folder or of files, in the order of definition.

    Raises `InvalidWorkflow` with every problem of every file.
    """
    problems: list[Problem] = []
    remarks: list[Problem] = []
    given = [where] if isinstance(where, Path | str) else list(where)
    files = [file for each in given for file in constraint_files(Path(each), problems)]
    constraints = read_constraints(files, problems, remarks)
    if problems:
        raise InvalidWorkflow("constraints", problems)
    return constraints


def constraint_files(path: Path, problems: list[Problem]) -> list[Path]:
    """Returns the constraint files of a folder, sorted by name; or the file itself."""
    if not path.is_dir():
        return [path]
    try:
        found = [file for file in path.iterdir() if file.suffix in (".yaml", ".yml")]
    except OSError as error:
        problems.append(Problem(display_path(path), f"cannot be read: {error.strerror or error}"))
        return []
    return sorted(file for file in found if not file.name.startswith("."))


def read_constraints(
    files: Iterable[Path], problems: list[Problem], remarks: list[Problem]
) -> list[Constraint]:
    """Returns what the files say; mistakes go to `problems`, what is only odd to `remarks`."""
    constraints: list[Constraint] = []
    owner: dict[str, Path] = {}
    for file in files:
        constraint = _read_file(file, problems, remarks)
        if constraint is None:
            continue
        other = owner.setdefault(constraint.id, file)
        if other is not file:
            what = f"the id {constraint.id!r} is taken by {display_path(other)}"
            problems.append(
                Problem(display_path(file), what, "give each constraint an id of its own")
            )
            continue
        constraints.append(constraint)
    return constraints


def constraint_from_dict(raw: Mapping[str, Any], default_id: str = "") -> Constraint:
    """Reads a constraint as it stands in YAML; raises `InvalidWorkflow` with every problem."""
    problems: list[Problem] = []

    name = default_id or str(raw.get("id", "constraint"))
    said = _checked(raw, lambda _: name, problems)
    if said is not None and not (said.id or default_id):
        problems.append(Problem(name, "id is missing", ID_WORDS))
    if said is None or problems:
        raise InvalidWorkflow(name, problems)
    return said.value(default_id)


def inline_constraint(name: str, sentence: str, priority: int) -> Constraint:
    """Returns the constraint that one line in a flow file stands for."""
    return Constraint(name, priority, sentence, (Rule(name, sentence, Severity.HIGH),))


def _read_file(file: Path, problems: list[Problem], remarks: list[Problem]) -> Constraint | None:
    text = read_text(file, problems)
    document = (
        read_mapping(text, display_path(file), problems, "fields") if text is not None else None
    )
    if document is None:
        return None
    newer = newer_version(document, VERSION)
    if newer is not None:
        problems.append(newer)
        return None
    own: list[Problem] = []
    said = _checked(document.content, document.at, own)
    if said is not None and said.id is None and not _is_id(file.stem):
        own.append(
            Problem(display_path(file), f"its name {file.stem!r} is no id", "write an id: into it")
        )
    problems.extend(sorted(own, key=line_of))
    if said is None or own:
        return None
    if said.older_sources is not None:
        remarks.append(
            Problem(document.at(("sources",)), "`sources` is the older form", "source: {files: …}")
        )
    if not said.summary.strip() and not said.rules:
        remarks.append(Problem(display_path(file), "has neither a summary nor rules"))
    return said.value(file.stem)


def _checked(
    raw: Mapping[str, Any],
    at: Callable[[tuple[str | int, ...]], str],
    problems: list[Problem],
) -> ConstraintFile | None:
    try:
        said = ConstraintFile.model_validate(dict(raw))
    except ValidationError as error:
        problems.extend(m.problem(at) for m in mistakes_of(error, ConstraintFile))
        return None
    contradictions = said.contradictions()
    problems.extend(mistake.problem(at) for mistake in contradictions)
    return None if contradictions else said


def _is_id(name: str) -> bool:
    return re.match(ID, name) is not None and len(name) <= 100
