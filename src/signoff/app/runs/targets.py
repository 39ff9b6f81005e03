"""Finds and compiles workflows: what a target on the command line means, and what there is to name.

A target is `package.module:NAME`, a file (`flow.py`, `flow.py:NAME`, or a file of a
notation), `scheme:name` of a notation, or a name alone: of a workflow that discovery finds, or
one that a notation has. What is not Python is compiled by its notation.

A compiler gets the options of the command line, the notation's settings and the available
agents. What it may depend on is stored with a run under `given`, so that a resume compiles
the same workflow wherever and whenever it happens.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from signoff import plugins
from signoff.agents import kinds
from signoff.agents.base import KnownAgent
from signoff.app.settings.agents import build_agents, known_agents
from signoff.app.settings.home import Home, expected_home
from signoff.app.settings.settings import Settings, load_settings
from signoff.app.settings.trust import check_trust
from signoff.core.errors import InvalidWorkflow, Problem, UnknownName, UsageError
from signoff.core.workflow import Workflow
from signoff.documents import discovery
from signoff.documents.python_files import import_file, import_named, make_importable
from signoff.notation import YAML_SUFFIXES, CompileContext, Notation, OptionKind
from signoff.runtime.ports import Agent, capabilities_of

if TYPE_CHECKING:
    from signoff.documents.source_file import SourceFile


KEY = "notation"
"""The top-level key with which a YAML file names its notation."""
AGENT = "agent"
"""The option of a notation that asks this agent where a workflow names none, and only there."""


def compile_context(
    home: Home,
    settings: Settings,
    options: Mapping[str, Any] | None = None,
    *,
    cwd: Path | None = None,
    agents: Mapping[str, Agent] | None = None,
    check_only: bool = False,
) -> CompileContext:
    """Returns what compilers get in a project; `options` come from the command line.

    `agents` are those that a program provides in addition to the configured ones.
    """

    # Agents tell what they can do, and may have to be imported for that.
    trust = partial(check_trust, home, settings)
    trust("")
    known = _known(settings, agents or {})
    found = [name for name in kinds.PROGRAMS if known[name].configured or _is_installed(name)]
    return CompileContext(
        root=home.root,
        home=home.path,
        options=portable_options(options or {}, cwd or home.root, home.root),
        settings=settings.sections,
        workflows=settings.workflows,
        agents=known,
        default_agent=kinds.DEFAULT_AGENT if kinds.DEFAULT_AGENT in found else kinds.AUTO,
        installed=found,
        without_key=[
            name
            for name, each in known.items()
            if kinds.missing_key(each.kind, each.options, os.environ)
        ],
        agent_names=sorted(known),
        trust=trust,
        check_only=check_only,
    )


def default_agent(available: Collection[str]) -> str:
    """Returns the agent for requests that name none; those that are configured are `available`."""
    there = kinds.DEFAULT_AGENT in available or _is_installed(kinds.DEFAULT_AGENT)
    return kinds.DEFAULT_AGENT if there else kinds.AUTO


def stored_context(description: str, now: CompileContext) -> CompileContext:
    """Returns the context a run was compiled in, read from its stored description."""
    stored = _stored(description)
    if stored is None:
        return replace(now, resumes=True)
    return replace(
        now,
        default_agent=stored.get("default_agent", ""),
        installed=stored.get("found", ()),
        options=stored_options(description),
        # The current agents must not affect a run that has already started.
        agent_names=None,
        resumes=True,
    )


def stored_options(description: str) -> dict[str, Any]:
    """Returns the options that a run was started with, read from its stored description."""
    stored = _stored(description) or {}
    return {name: stored[name] for name in stored if name not in ("default_agent", "found")}


def _stored(description: str) -> dict[str, Any] | None:
    source = json.loads(description).get("source")
    stored = source.get("given") if isinstance(source, dict) else None
    return stored if isinstance(stored, dict) else None


def portable_options(options: Mapping[str, Any], cwd: Path, root: Path) -> dict[str, Any]:
    """Returns the options in use, with paths relative to the project's root if possible."""
    files = {
        option.name
        for option in (plugins.options_of("run") if options else ())
        if option.kind is OptionKind.FILE
    }
    return {
        name: portable_path(cwd / Path(value).expanduser(), root) if name in files else value
        for name, value in options.items()
        if value
    }


def compile_path(path: Path, context: CompileContext) -> Workflow:
    """Compiles a file by the notation it is written in."""
    # Targets that are not files need no YAML, which takes a while to load.
    from signoff.documents.source_file import SourceFile

    file = SourceFile(path)
    notation = notation_of(file)
    compiler = plugins.load(notation.compile)
    return _compiled(compiler, file, file.name, notation, context)


def notation_of(file: SourceFile) -> Notation:
    """Returns the notation of a file: the one it names, or the one that recognizes it."""
    # Every notation is asked, built in or installed, so a plug-in can add a kind of file.
    readers = [each for each in plugins.notations() if each.compile]
    able = [each for each in readers if file.path.suffix in each.suffixes]
    if not able:
        suffixes = sorted({suffix for each in readers for suffix in each.suffixes})
        what = f"no notation reads {file.path.suffix or 'such'} files"
        remedy = f"use one of: {', '.join(['.py', *suffixes])}"
        raise InvalidWorkflow(file.path.name, [Problem(str(file.path), what, remedy)])
    if file.path.suffix not in YAML_SUFFIXES:
        return able[0]
    return _recognized(file, able)


def refuse_options(target: str, options: Mapping[str, Any], notation: Notation | None) -> None:
    """Raises `UsageError` for options that the target's notation does not have."""
    own = {option.name for option in notation.options} if notation is not None else set()
    foreign = [name for name, value in options.items() if value and name not in own]
    if foreign:
        flags = {each.name: each.flag for every in plugins.notations() for each in every.options}
        listed = " and ".join(flags.get(name, name) for name in foreign)
        kind = notation.label if notation is not None else "workflow in Python"
        raise UsageError(f"{listed} cannot be used with {target}: it is a {kind}")


def _recognized(file: SourceFile, able: list[Notation]) -> Notation:
    content = file.content if isinstance(file.content, dict) else {}
    by_name = {each.name: each for each in able}
    # What a file says about itself goes before any guess from its keys.
    if KEY in content:
        if content[KEY] not in by_name:
            raise UnknownName(f"notation in {file.name}", str(content[KEY]), by_name)
        return by_name[content[KEY]]
    claims = [each for each in able if each.recognize(content)]
    if len(claims) > 1:
        names = " and ".join(repr(each.name) for each in claims)
        remedy = f"name one of them at the top of the file, as in `{KEY}: {claims[0].name}`"
        raise InvalidWorkflow(file.name, [Problem(file.name, f"is recognized by {names}", remedy)])
    return claims[0] if claims else by_name[plugins.DEFAULT_NOTATION]


def _compiled(
    compiler: Any, source: Any, target: str, notation: Notation, context: CompileContext
) -> Workflow:
    refuse_options(target, context.options, notation)
    if context.agent and any(option.name == AGENT for option in notation.options):
        context = replace(context, options={**context.options, AGENT: context.agent})
    workflow: Workflow = compiler(source, context)
    if "given" in workflow.source:
        return workflow
    return workflow.with_source(given=context.stored)


def portable_path(path: Path, root: Path) -> str:
    """Returns a path relative to the project's root, or an absolute one outside of it."""
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _is_installed(name: str) -> bool:
    """Tells whether an agent's program is on PATH or bundled with an installed package."""
    # Asked of a table: loading the agents to ask them takes longer than reading a flow.
    return bool(shutil.which(name) or kinds.bundled_program(kinds.BUNDLED.get(name, ())))


def _known(settings: Settings, also: Mapping[str, Agent]) -> dict[str, KnownAgent]:

    configured = known_agents(settings.agents)
    agents: dict[str, KnownAgent] = {}
    for name, agent in {**build_agents(settings.agents), **also}.items():
        own = configured.get(name)
        agents[name] = KnownAgent(
            kind=own.kind if own else name,
            model=own.options.get("model") if own else None,
            configured=name in settings.agents,
            options=own.options if own else {},
            declared=partial(capabilities_of, agent),
        )
    roles = {
        role: replace(agents.get(by, KnownAgent(by)), configured=True)
        for role, by in settings.roles.items()
    }
    return {**roles, **agents}


_PYTHON_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<name>\w+))?")
_MODULE = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>\w+)")
_NAMED = re.compile(r"(?P<scheme>[a-z][a-z0-9_-]*):(?P<name>\S+)")
_OTHER_FILE = re.compile(r".+\.(ya?ml|json|toml|md)")


@dataclass(frozen=True)
class Target:
    """A workflow, and how to find it again from the project's root."""

    workflow: Workflow
    location: str
    problems: tuple[Problem, ...] = ()
    """Problems of other workflows that discovery found."""


def find_workflow(
    target: str,
    cwd: Path,
    environment: Mapping[str, str],
    options: Mapping[str, Any] | None = None,
) -> Workflow:
    """Returns a workflow that is not going to be run; it needs neither a project nor a goal."""
    home = expected_home(cwd, environment)
    settings = load_settings(home, environment)
    context = compile_context(home, settings, options, cwd=cwd, check_only=True)
    return resolve(target, cwd, context, settings.workflows).workflow


def resolve(
    target: str, cwd: Path, context: CompileContext, searched: Sequence[str] = ()
) -> Target:
    """Returns the workflow a target names; an unknown name is reported with the valid ones.

    `searched` are the folders and modules of the settings in which workflows have names.
    """
    # From the most explicit form to a bare name, so that what a target means never depends on which
    # other files exist.
    make_importable([cwd, context.root])
    if match := _NAMED.fullmatch(target):
        # A scheme wins over a file or a top-level module of the same name; a file can be given by
        # a longer path.
        for notation in plugins.notations():
            if notation.scheme == match["scheme"]:
                resolver, name = plugins.load(notation.resolve), match["name"]
                return Target(_compiled(resolver, name, target, notation, context), target)
    if match := _PYTHON_FILE.fullmatch(target):
        path = _existing(cwd / Path(match["path"]).expanduser())
        name = match["name"] or discovery.NAME
        refuse_options(target, context.options, None)
        workflow = _find_in_module(import_file(path), name, path.name)
        return Target(workflow, _location(path, context.root, name))
    if _OTHER_FILE.fullmatch(target):
        return _compile_file(_existing(cwd / Path(target).expanduser()), context)
    if match := _MODULE.fullmatch(target):
        refuse_options(target, context.options, None)
        return Target(_from_module(match["module"], match["name"]), target)
    return _by_name(target, cwd, context, searched)


def _by_name(name: str, cwd: Path, context: CompileContext, searched: Sequence[str]) -> Target:
    """Finds what has a name; what belongs to the project goes before what a package has."""
    known = _known_names(context, searched)
    meant = known.named(name)
    if len({each.target for each in meant}) == 1:
        # Named by its file or its scheme from here on: compiled again with the options of this
        # run, which the search does not use, and found again without a search.
        found = resolve(meant[0].target, context.root, context)
        return replace(found, problems=known.problems)
    if meant:
        raise known.ambiguous(name, meant)
    if _is_file(cwd / name):
        # The error lists the supported suffixes.
        return _compile_file((cwd / name).resolve(), context)
    if known.problems:
        raise InvalidWorkflow(name, known.problems)
    unknown = UnknownName("workflow", name, [each.name for each in known.entries])
    if any(each.path is not None for each in known.entries):
        raise unknown
    raise UsageError(
        f"{unknown}, and this project has no workflows with names; give a file (flow.py) or a "
        "module (package.module:NAME), or put the workflow into .signoff/flows/"
    )


def _compile_file(path: Path, context: CompileContext) -> Target:
    return Target(compile_path(path, context), _location(path, context.root))


def _existing(path: Path) -> Path:
    if path.is_file():
        return path.resolve()
    siblings = sorted(path.parent.glob(f"*{path.suffix}"))
    raise UnknownName("file", str(path), [each.name for each in siblings])


def _is_file(path: Path) -> bool:
    # A text that is too long for a file name raises an OSError.
    with suppress(OSError):
        return path.is_file()
    return False


def _location(path: Path, root: Path, name: str = "") -> str:
    tail = f":{name}" if name else ""
    return f"{portable_path(path, root)}{tail}"


def _from_module(module: str, name: str) -> Workflow:
    try:
        return _find_in_module(import_named(module), name, module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"cannot import module {module!r} ({error}); "
            "run signoff from the folder that contains it, or install it"
        ) from error


def _find_in_module(module: ModuleType, name: str, origin: str) -> Workflow:
    value = getattr(module, name, None)
    if isinstance(value, Workflow):
        return value
    known = [n for n, v in vars(module).items() if isinstance(v, Workflow)]
    if hasattr(module, name):
        what = f"{name} is {type(value).__name__}, not a Workflow"
        remedy = f"workflows in it: {', '.join(known) or 'none'}"
        raise InvalidWorkflow(origin, [Problem(origin, what, remedy)])
    raise UnknownName(f"workflow in {origin}", name, [f"{origin}:{n}" for n in known])


def discover(context: CompileContext, searched: Sequence[str] = ()) -> discovery.Discovery:
    """Searches the home's flows and the configured folders and modules."""
    # Options are for the one workflow that is run, not for all that are found.
    context = replace(context, options={}, check_only=True)
    make_importable([context.root])
    problems: list[Problem] = []
    files = _flow_files(Home(context.home).flows) if context.home is not None else []
    if files:
        context.trust("flows")
    for source in searched:
        files.extend(discovery.source_files(source, context.root, problems))

    def load(path: Path) -> Workflow | None:
        return discovery.load_module(path) if path.suffix == ".py" else compile_path(path, context)

    return discovery.discover_files(files, problems, load)


def _flow_files(folder: Path) -> list[Path]:
    # Notations are loaded only if there is a folder to search.
    notations = plugins.notations() if folder.is_dir() else ()
    suffixes = {suffix for each in notations for suffix in each.suffixes}
    others = (path for path in sorted(folder.rglob("*")) if path.suffix in suffixes)
    return [*discovery.python_files(folder), *others]


# Surfaces that run workflows for others take only what the catalog lists: any other file or module
# could be any code of this machine.

REVIEW = "review"
"""The name under which files that exist are reviewed, unless a workflow has it."""


class CatalogEntry(NamedTuple):
    """A workflow that can be started."""

    name: str
    target: str
    """What starts it, whatever else has the same name."""
    description: str
    kind: str
    """What it is, in words: a review flow, a skill, a workflow in Python."""
    own: bool
    """Whether it belongs to the project, not to a package."""
    path: Path | None = None
    """The file that defines it, if it was found by its file."""


class Catalog(NamedTuple):
    """What can be started, those of the project first, and what is wrong with the rest."""

    entries: tuple[CatalogEntry, ...]
    problems: tuple[Problem, ...]

    def find(self, target: str, cwd: Path) -> CatalogEntry:
        """Returns the entry that a target means: a name, `scheme:name`, or a file seen from `cwd`.

        Nothing is imported for it. Raises `UnknownName` with the valid names, and `UsageError` if
        several have it.
        """
        # A whole target is never ambiguous, and goes before a name that looks like one.
        exact = [each for each in self.entries if each.target == target]
        meant = exact or self.named(target) or self._defined_in(target, cwd)
        if not meant:
            raise UnknownName("workflow", target, [*self.by_name()])
        if len(meant) > 1:
            raise self.ambiguous(target, meant)
        return meant[0]

    @staticmethod
    def ambiguous(name: str, meant: Sequence[CatalogEntry]) -> UsageError:
        """Returns the error of a name that means several things: running one would be a guess."""
        targets = " or ".join(each.target for each in meant)
        return UsageError(f"{name!r} can mean {targets}; use one of these instead")

    def by_name(self) -> dict[str, CatalogEntry]:
        """Returns the entries by the shortest target of each: the name, where it is unique."""
        return {
            each.name if self.named(each.name) == [each] else each.target: each
            for each in self.entries
        }

    def named(self, name: str) -> list[CatalogEntry]:
        """Returns what has a name; what belongs to the project goes before what a package has."""
        named = [each for each in self.entries if each.name == name]
        return [each for each in named if each.own] or named

    def _defined_in(self, target: str, cwd: Path) -> list[CatalogEntry]:
        path = cwd / target.removesuffix(f":{discovery.NAME}")
        # Too long for a path, with a null character, or a circle of links: no file has such a name.
        with suppress(OSError, RuntimeError, ValueError):
            path = path.resolve()
        return [each for each in self.entries if each.path == path]


def catalog(home: Home, settings: Settings, agents: Mapping[str, Agent] | None = None) -> Catalog:
    """Searches the project's flows, the folders and modules of its settings, and its packages.

    The project need not be open, or exist yet. `agents` are those that a program provides.
    """
    context = compile_context(home, settings, agents=agents, check_only=True)
    entries, problems = _known_names(context, settings.workflows)
    if all(each.name != REVIEW for each in entries):
        # The review of files that exist needs no definition.
        about = "Review files or a change until they are clean."
        able = next((each for each in plugins.notations() if each.review), None)
        if able is not None:
            entries = (*entries, CatalogEntry(REVIEW, REVIEW, about, able.label, own=False))
    ordered = sorted(entries, key=lambda entry: (not entry.own, entry.kind, entry.name))
    return Catalog(tuple(ordered), problems)


def _known_names(context: CompileContext, searched: Sequence[str]) -> Catalog:
    """Returns everything that has a name."""
    found = discover(context, searched)
    entries = []
    for each in found.found:
        location = portable_path(each.path, context.root)
        target = f"{location}:{discovery.NAME}" if each.path.suffix == ".py" else location
        name, about, kind = each.workflow.name, each.workflow.description, each.workflow.notation
        entries.append(CatalogEntry(name, target, about, _kind(kind), own=True, path=each.path))
    for notation in plugins.notations():
        # A notation that tells none of them apart ships all of them.
        shipped = plugins.load(notation.shipped)() if notation.shipped else None
        for name in plugins.load(notation.names)(context) if notation.names else ():
            own = shipped is not None and name not in shipped
            target = f"{notation.scheme}:{name}"
            entries.append(CatalogEntry(name, target, "", notation.label, own))
    return Catalog(tuple(entries), found.problems)


def _kind(notation: str) -> str:
    found = plugins.notation(notation)
    return found.label if found is not None else "workflow in Python"
