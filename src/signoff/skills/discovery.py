"""Finds skills: in the library, in the project's `skills` folder, and where the settings say.

A skill is a module that assigns `WORKFLOW`. Names are read from the source, so that finding one
skill imports only that one. A module whose source does not show its name is imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from signoff.core.errors import InvalidWorkflow, Problem, UnknownName
from signoff.core.workflow import Workflow
from signoff.documents import discovery
from signoff.documents.files import display_path
from signoff.documents.python_files import import_named, make_importable
from signoff.documents.regular_files import read_regular
from signoff.documents.trust import Trust
from signoff.notation import CompileContext

LIBRARY = "signoff.skills.library"
FOLDER = "skills"
"""The folder of the project's own skills in its home."""

_LIBRARY_FOLDER = Path(__file__).with_name("library")
_MODULE = re.compile(rf"[A-Za-z_][\w.]*:{discovery.NAME}")


class InvalidSkill(InvalidWorkflow):
    """The skill cannot be used."""

    noun = "skill"

    def __str__(self) -> str:
        """Returns all problems on one line, for the agent that asked for a step."""
        this = f"skill {self.name!r}"
        texts = [str(each).removeprefix(f"{this}: ") for each in self.problems]
        return f"{this} cannot be used: {'; '.join(texts)}"


@dataclass(frozen=True)
class SkillSource(discovery.Definition):
    """A module that defines a skill, before it is imported.

    Its name is empty if its source does not show it.
    """

    path: Path = field(kw_only=True)
    steps: int | None = None
    """How many it has, as far as its source shows it."""
    trust: Trust = field(default=lambda _definitions: None, compare=False)
    """Called before it is imported."""

    @property
    def in_library(self) -> bool:
        """Whether it is part of this package."""
        return self.path.parent == _LIBRARY_FOLDER

    def load(self) -> Workflow:
        """Imports the module; raises `InvalidSkill` if that fails."""
        label = self.name or self.path.stem
        if self.problem is not None:
            raise InvalidSkill(label, [self.problem])
        try:
            workflow = self._imported()
        except InvalidWorkflow as error:
            raise InvalidSkill(label, error.problems) from error
        if self.name and workflow.name != self.name:
            what = f"is found as {self.name!r}, but the workflow's name is {workflow.name!r}"
            raise InvalidSkill(label, [Problem(self.origin, what, "use one name")])
        return workflow

    def _imported(self) -> Workflow:
        if self.in_library:
            return _workflow_of(import_named(f"{LIBRARY}.{self.path.stem}"))
        self.trust(FOLDER)
        workflow = discovery.load_module(self.path)
        if workflow is None:
            raise InvalidSkill(self.name, [Problem(self.origin, f"assigns no {discovery.NAME}")])
        return workflow


class Skill(NamedTuple):
    """A skill, and where it comes from."""

    workflow: Workflow
    source: SkillSource


class Workflows(Mapping[str, Workflow]):
    """Workflows by name; the module of each is imported when it is first used."""

    def __init__(self, sources: Mapping[str, SkillSource]) -> None:
        self._sources = sources
        self._loaded: dict[str, Workflow] = {}

    def __getitem__(self, name: str) -> Workflow:
        """Returns a workflow; raises `InvalidSkill` if its module cannot be used."""
        if name not in self._loaded:
            self._loaded[name] = self._sources[name].load()
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        """Yields the names."""
        return iter(self._sources)

    def __len__(self) -> int:
        """Returns how many there are."""
        return len(self._sources)

    def __contains__(self, name: object) -> bool:
        """Tells whether there is a workflow of that name, without importing it."""
        return name in self._sources


def discover_workflows(package: str | Path | ModuleType = LIBRARY) -> Workflows:
    """Returns the workflows of all modules of a package or a folder, by name.

    Names are read from the sources, and a module whose source does not show it is imported. One
    `InvalidWorkflow` lists every source that cannot be read and every name that is used twice.
    """
    source = package.__name__ if isinstance(package, ModuleType) else str(package)
    problems: list[Problem] = []
    files = discovery.source_files(source, Path.cwd(), problems)
    usable = _usable(_named(_read(path.resolve() for path in files)), problems)
    if problems:
        raise InvalidWorkflow(source, problems)
    return Workflows({each.name: each for each in usable})


def find_skill(name: str, context: CompileContext) -> Workflow:
    """Imports one skill by its name, a file or `package.module:WORKFLOW`; else `UnknownName`."""
    return find_in_folder(name, context)[0]


def find_in_folder(name: str, context: CompileContext) -> tuple[Workflow, Path | None]:
    """Returns a skill, and the folder in which `name` leads to it; None if it does everywhere."""
    make_importable([Path.cwd(), context.root])
    if _MODULE.fullmatch(name):
        context.trust("")
        return _from_module(name), Path.cwd()
    if name.endswith(".py"):
        return _from_file(Path.cwd() / name), Path.cwd()
    source = find_source(name, context)
    return source.load(), None if source.in_library else context.root


def resolve_skill(name: str, context: CompileContext) -> Workflow:
    """Imports what `skill:NAME` means in a run; what the settings name can be run by its name."""
    places = replace(context, workflows=()) if name in skill_names(context) else context
    return find_skill(name, places)


def find_source(name: str, context: CompileContext) -> SkillSource:
    """Returns the module of a skill; raises `UnknownName`, or `InvalidSkill` if there are two."""
    found = list(_sources(context))
    if all(each.name != name for each in found):
        # Its source may not show the name that it has.
        found = list(_named(found))
    return discovery.find_definition(
        name, discovery.checked_names(found, "skill"), "skill", InvalidSkill
    )


def skills_folder(context: CompileContext) -> list[Path]:
    """Returns the folder of the project's own skills, if there is one."""
    folder = context.home / FOLDER if context.home is not None else None
    return [folder] if folder is not None and folder.is_dir() else []


def skill_names(context: CompileContext) -> list[str]:
    """Returns the names of the skills in the library and in the project's folder.

    Those that the settings name are ordinary workflows as well, and found as such.
    """
    own = _named(_sources(replace(context, workflows=())))
    return [each.name for each in own if each.problem is None]


def library_names() -> list[str]:
    """Returns the names of the skills in the library."""
    return [each.name for each in _read(_library_files())]


def listed_skills(context: CompileContext) -> tuple[list[SkillSource], list[Problem]]:
    """Returns every skill as its source shows it, by name, and the problems of others.

    Those of the library are imported, which is no risk; nothing else is.
    """
    problems: list[Problem] = []
    shown = (_with_details(each) for each in _sources(context, problems))
    return _usable(shown, problems), problems


def _with_details(source: SkillSource) -> SkillSource:
    if not source.in_library:
        return replace(source, name=source.name or source.path.stem)
    workflow = source.load()
    return replace(source, description=workflow.description, steps=workflow.total_steps)


def all_skills(context: CompileContext) -> tuple[list[Skill], list[Problem]]:
    """Imports every skill; returns those that can be used, by name, and the problems of others."""
    make_importable([context.root])
    problems: list[Problem] = []
    skills = []
    for source in _usable(_named(_sources(context, problems)), problems):
        try:
            skills.append(Skill(source.load(), source))
        except InvalidSkill as error:
            problems += error.problems
    return skills, problems


def own_skills(context: CompileContext) -> discovery.Discovery:
    """Imports the skills in the project's folder, for validation."""
    # Those that the settings name are checked as ordinary workflows.
    skills, problems = all_skills(replace(context, workflows=()))
    own = [each for each in skills if not each.source.in_library]
    found = tuple(discovery.DiscoveredWorkflow(each.workflow, each.source.path) for each in own)
    return discovery.Discovery(found, tuple(problems))


def _sources(
    context: CompileContext, problems: list[Problem] | None = None
) -> Iterator[SkillSource]:
    """Yields the skills of all places, each file once."""
    files = [file for folder in skills_folder(context) for file in discovery.python_files(folder)]
    for source in context.workflows:
        files += discovery.source_files(
            source, context.root, problems if problems is not None else []
        )
    own = (path.resolve() for path in files)
    for each in _read(dict.fromkeys((*_library_files(), *own))):
        yield replace(each, trust=context.trust)


def _library_files() -> list[Path]:
    return sorted(_LIBRARY_FOLDER.glob("[!_]*.py"))


def _read(files: Iterable[Path]) -> Iterator[SkillSource]:
    """Yields the skills among files, as their sources show them."""
    for path in files:
        if path.parent == _LIBRARY_FOLDER and path.stem != "__init__":
            # Modules of the library are named after their skills, which a test checks.
            yield SkillSource(path.stem.replace("_", "-"), "library", path=path)
        elif (source := _own_source(path)) is not None:
            yield source


def _usable(sources: Iterable[SkillSource], problems: list[Problem]) -> list[SkillSource]:
    """Returns the skills that can be used; adds to `problems` what is wrong with the others."""
    found = discovery.checked_names(sources, "skill")
    problems += dict.fromkeys(each.problem for each in found if each.problem is not None)
    return [each for each in found if each.problem is None]


def _own_source(path: Path) -> SkillSource | None:
    unnamed = SkillSource("", display_path(path), path=path)
    try:
        value = discovery.assigned_value(read_regular(path, None, follow=True).decode("utf-8-sig"))
    except (SyntaxError, OSError, ValueError) as error:
        return replace(unnamed, problem=discovery.reading_problem(error, unnamed.origin))
    return _described(unnamed, value) if value is not None else None


def _described(source: SkillSource, value: ast.expr) -> SkillSource:
    """Returns a source with what the call of `Workflow` shows."""
    match value:
        case ast.Call(
            func=ast.Name(id="Workflow") | ast.Attribute(attr="Workflow"), args=arguments
        ):
            named = {each.arg: each.value for each in value.keywords}
            name, *steps = [*([named["name"]] if "name" in named else []), *arguments] or [value]
            count = None if any(isinstance(each, ast.Starred) for each in steps) else len(steps)
            about = _literal(named.get("description"))
            return replace(source, name=_literal(name), description=about, steps=count)
    return source


def _literal(value: ast.expr | None) -> str:
    constant = value.value if isinstance(value, ast.Constant) else None
    return constant if isinstance(constant, str) else ""


def _named(sources: Iterable[SkillSource]) -> Iterator[SkillSource]:
    """Yields the sources with their names; those that do not show it are imported."""
    for each in sources:
        if each.name or each.problem is not None:
            yield each
            continue
        try:
            yield replace(each, name=each.load().name)
        except InvalidSkill as error:
            yield replace(each, problem=error.problems[0])


def _from_module(target: str) -> Workflow:
    module = target.partition(":")[0]
    try:
        return _workflow_of(import_named(module))
    except ModuleNotFoundError as error:
        raise InvalidSkill(target, [Problem(module, str(error))]) from error
    except InvalidWorkflow as error:
        raise InvalidSkill(target, error.problems) from error


def _from_file(path: Path) -> Workflow:
    if not path.is_file():
        raise UnknownName("file", str(path), sorted(p.name for p in path.parent.glob("*.py")))
    return SkillSource("", display_path(path), path=path.resolve()).load()


def _workflow_of(module: ModuleType) -> Workflow:
    value = getattr(module, discovery.NAME, None)
    if isinstance(value, Workflow):
        return value
    what = f"{discovery.NAME} is {type(value).__name__}, not a Workflow"
    raise InvalidWorkflow(module.__name__, [Problem(module.__name__, what)])
