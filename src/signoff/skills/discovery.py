"""Finds skills: in the library, in the project's `skills` folder, and where the settings say.

A skill is a module that assigns `WORKFLOW`. Names are read from the source, so that finding one
skill imports only that one. A module whose source does not show its name is imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from signoff.core.workflow import Workflow
from signoff.discovery import (
    NAME,
    DiscoveredWorkflow,
    Discovery,
    assigned_value,
    load_module,
    python_files,
    source_files,
)
from signoff.documents.files import display_path
from signoff.documents.python_files import import_named, make_importable
from signoff.documents.regular_files import read_regular
from signoff.documents.trust import Trust
from signoff.errors import InvalidWorkflow, Problem, UnknownName
from signoff.notation import CompileContext

LIBRARY = "signoff.skills.library"
FOLDER = "skills"
"""The folder of the project's own skills in its home."""

_LIBRARY_FOLDER = Path(__file__).with_name("library")
_ASSIGNMENT = re.compile(rf"^{NAME}\b[^=\n]*=", re.MULTILINE)
_MODULE = re.compile(rf"[A-Za-z_][\w.]*:{NAME}")


class InvalidSkill(InvalidWorkflow):
    """The skill cannot be used."""

    noun = "skill"

    def __str__(self) -> str:
        """Returns all problems on one line, for the agent that asked for a step."""
        this = f"skill {self.name!r}"
        texts = [str(each).removeprefix(f"{this}: ") for each in self.problems]
        return f"{this} cannot be used: {'; '.join(texts)}"


@dataclass(frozen=True)
class SkillSource:
    """A module that defines a skill, before it is imported."""

    name: str
    """Empty if its source does not show it."""
    path: Path
    in_library: bool = False
    description: str = ""
    """As far as its source shows it, like the number of its steps."""
    steps: int | None = None
    problem: Problem | None = None
    """Why it cannot be used."""
    trust: Trust = field(default=lambda _definitions: None, compare=False)
    """Called before it is imported."""

    @property
    def origin(self) -> str:
        """Where it comes from, for users."""
        return "library" if self.in_library else display_path(self.path)

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
        workflow = load_module(self.path)
        if workflow is None:
            raise InvalidSkill(self.name, [Problem(self.origin, f"assigns no {NAME}")])
        return workflow


@dataclass(frozen=True)
class Skill:
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
    files = source_files(source, Path.cwd(), problems)
    by_name: dict[str, list[SkillSource]] = {}
    for each in _named(_read((path.resolve(), False) for path in files)):
        if each.problem is not None:
            problems.append(each.problem)
        else:
            by_name.setdefault(each.name, []).append(each)
    problems += [_duplicate(name, same) for name, same in by_name.items() if len(same) > 1]
    if problems:
        raise InvalidWorkflow(source, problems)
    return Workflows({name: same[0] for name, same in by_name.items()})


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
    files = list(_files(context))
    matching = [each for each in _read(files, context, mentions=name) if each.name == name]
    if not matching:
        # Its source may not show the name that it has.
        every = list(_named(_read(files, context)))
        matching = [each for each in every if each.name == name]
        if not matching:
            _refuse_unknown(name, every)
    if len(matching) > 1:
        raise InvalidSkill(name, [_duplicate(name, matching)])
    return matching[0]


def skills_folder(context: CompileContext) -> list[Path]:
    """Returns the folder of the project's own skills, if there is one."""
    folder = context.home / FOLDER if context.home is not None else None
    return [folder] if folder is not None and folder.is_dir() else []


def skill_names(context: CompileContext) -> list[str]:
    """Returns the names of the skills in the library and in the project's folder.

    Those that the settings name are ordinary workflows as well, and found as such.
    """
    own = _read(_files(replace(context, workflows=())), context)
    return [each.name for each in _named(own) if each.problem is None]


def library_names() -> list[str]:
    """Returns the names of the skills in the library."""
    return [each.name for each in map(_library_source, _library_files()) if each is not None]


def listed_skills(context: CompileContext) -> tuple[list[SkillSource], list[Problem]]:
    """Returns every skill as its source shows it, by name, and the problems of others.

    Those of the library are imported, which is no risk; nothing else is.
    """
    problems: list[Problem] = []
    by_name: dict[str, list[SkillSource]] = {}
    for source in _read(_files(context, problems), context):
        if source.problem is not None:
            problems.append(source.problem)
            continue
        shown = _with_details(source) if source.in_library else source
        by_name.setdefault(source.name or source.path.stem, []).append(shown)
    problems += [_duplicate(name, each) for name, each in by_name.items() if len(each) > 1]
    single = sorted((name, each[0]) for name, each in by_name.items() if len(each) == 1)
    return [replace(each, name=name) for name, each in single], problems


def _with_details(source: SkillSource) -> SkillSource:
    workflow = source.load()
    return replace(source, description=workflow.description, steps=workflow.total_steps)


def all_skills(context: CompileContext) -> tuple[list[Skill], list[Problem]]:
    """Imports every skill; returns those that can be used, by name, and the problems of others."""
    make_importable([context.root])
    problems: list[Problem] = []
    by_name: dict[str, list[Skill]] = {}
    for source in _read(_files(context, problems), context):
        try:
            workflow = source.load()
        except InvalidSkill as error:
            problems += error.problems
            continue
        by_name.setdefault(workflow.name, []).append(Skill(workflow, source))
    problems += [
        _duplicate(name, [skill.source for skill in skills])
        for name, skills in by_name.items()
        if len(skills) > 1
    ]
    return [by_name[name][0] for name in sorted(by_name) if len(by_name[name]) == 1], problems


def own_skills(context: CompileContext) -> Discovery:
    """Imports the skills in the project's folder, for validation."""
    # Those that the settings name are checked as ordinary workflows.
    skills, problems = all_skills(replace(context, workflows=()))
    own = [each for each in skills if not each.source.in_library]
    found = tuple(DiscoveredWorkflow(each.workflow, each.source.path) for each in own)
    return Discovery(found, tuple(problems))


def _files(
    context: CompileContext, problems: list[Problem] | None = None
) -> Iterator[tuple[Path, bool]]:
    """Yields the files that may define skills, each once, and whether it is in the library."""
    for path in _library_files():
        yield path, True
    files = [file for folder in skills_folder(context) for file in python_files(folder)]
    for source in context.workflows:
        files += source_files(source, context.root, problems if problems is not None else [])
    for path in dict.fromkeys(file.resolve() for file in files):
        if path.parent != _LIBRARY_FOLDER:
            yield path, False


def _library_files() -> list[Path]:
    return sorted(_LIBRARY_FOLDER.glob("[!_]*.py"))


def _read(
    files: Iterable[tuple[Path, bool]], context: CompileContext | None = None, mentions: str = ""
) -> Iterator[SkillSource]:
    """Yields the skills among files; with `mentions`, only of files that contain that text."""
    for path, in_library in files:
        source = _library_source(path) if in_library else _own_source(path, mentions)
        if source is not None:
            yield source if context is None else replace(source, trust=context.trust)


def _library_source(path: Path) -> SkillSource | None:
    # Modules of the library are named after their skills, which a test checks.
    if not _ASSIGNMENT.search(path.read_text("utf-8")):
        return None
    return SkillSource(path.stem.replace("_", "-"), path, in_library=True)


def _own_source(path: Path, mentions: str) -> SkillSource | None:
    unnamed = SkillSource("", path)
    try:
        text = read_regular(path, None, follow=True).decode("utf-8-sig")
        if mentions not in text:
            return None
        value = assigned_value(text)
    except SyntaxError as error:
        where = f"{unnamed.origin}:{error.lineno}"
        return replace(unnamed, problem=Problem(where, f"SyntaxError: {error.msg}"))
    except (OSError, ValueError) as error:
        return replace(unnamed, problem=Problem(unnamed.origin, f"cannot be read: {error}"))
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


def _refuse_unknown(name: str, sources: Sequence[SkillSource]) -> NoReturn:
    """Raises an error that lists the known skills, and modules that could not be read."""
    # The project's own come first: they are not in the documentation.
    usable = sorted((each.in_library, each.name) for each in sources if each.problem is None)
    known = [own for _, own in usable]
    problems = [each.problem for each in sources if each.problem is not None]
    unknown = UnknownName("skill", name, known)
    if not problems:
        raise unknown
    raise InvalidSkill(name, [Problem(f"skill {name!r}", str(unknown)), *problems])


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
    return SkillSource("", path.resolve()).load()


def _workflow_of(module: ModuleType) -> Workflow:
    value = getattr(module, NAME, None)
    if isinstance(value, Workflow):
        return value
    what = f"{NAME} is {type(value).__name__}, not a Workflow"
    raise InvalidWorkflow(module.__name__, [Problem(module.__name__, what)])


def _duplicate(name: str, sources: Sequence[SkillSource]) -> Problem:
    origins = " and ".join(each.origin for each in sources)
    return Problem(f"skill {name!r}", f"defined twice: {origins}", "rename or remove one")
