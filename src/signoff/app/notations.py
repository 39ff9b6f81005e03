"""Compiles workflows that are not Python, each by its notation.

A compiler gets the options of the command line, the notation's settings and the available
agents. What it may depend on is stored with a run under `given`, so that a resume compiles
the same workflow wherever and whenever it happens.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff import plugins
from signoff.agents.base import KnownAgent
from signoff.agents.kinds import (
    AUTO,
    BUNDLED,
    DEFAULT_AGENT,
    PROGRAMS,
    bundled_program,
    missing_key,
)
from signoff.core.workflow import Workflow
from signoff.errors import InvalidWorkflow, Problem, UnknownName, UsageError
from signoff.notation import YAML_SUFFIXES, CompileContext, Notation, OptionKind
from signoff.runtime.ports import Agent, capabilities_of

if TYPE_CHECKING:
    from signoff.app.home import Home
    from signoff.app.settings import Settings
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
    from signoff.app.trust import trust_of

    # Agents tell what they can do, and may have to be imported for that.
    trust = trust_of(home, settings)
    trust("")
    known = _known(settings, agents or {})
    found = [name for name in PROGRAMS if known[name].configured or _is_installed(name)]
    return CompileContext(
        root=home.root,
        home=home.path,
        options=portable_options(options or {}, cwd or home.root, home.root),
        settings=settings.sections,
        workflows=settings.workflows,
        agents=known,
        default_agent=DEFAULT_AGENT if DEFAULT_AGENT in found else AUTO,
        installed=found,
        without_key=[
            name for name, each in known.items() if missing_key(each.kind, each.options, os.environ)
        ],
        agent_names=sorted(known),
        trust=trust,
        check_only=check_only,
    )


def default_agent(available: Collection[str]) -> str:
    """Returns the agent for requests that name none; those that are configured are `available`."""
    there = DEFAULT_AGENT in available or _is_installed(DEFAULT_AGENT)
    return DEFAULT_AGENT if there else AUTO


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


def notation_of_scheme(scheme: str) -> Notation | None:
    """Returns the notation whose targets begin with `scheme:`; None if there is none."""
    return next((each for each in plugins.notations() if each.scheme == scheme), None)


def compile_named(notation: Notation, name: str, context: CompileContext) -> Workflow:
    """Returns the workflow that a notation has under a name."""
    target = f"{notation.scheme}:{name}"
    return _compiled(plugins.load(notation.resolve), name, target, notation, context)


def named_by_notations(context: CompileContext) -> dict[str, list[Notation]]:
    """Returns the notations that can run something by a name alone, by that name."""
    names: dict[str, list[Notation]] = {}
    for each in plugins.notations():
        for name in plugins.load(each.names)(context) if each.names else ():
            names.setdefault(name, []).append(each)
    return names


def shipped_targets() -> set[str]:
    """Returns those of the named targets that are part of a package."""
    return {
        f"{each.scheme}:{name}"
        for each in plugins.notations()
        for name in (plugins.load(each.shipped)() if each.shipped else ())
    }


def notation_of(file: SourceFile) -> Notation:
    """Returns the notation of a file: the one it names, or the one that recognizes it."""
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


def is_recognized(file: SourceFile) -> bool:
    """Whether a YAML file names its notation, or one recognizes it."""
    content = file.content if isinstance(file.content, dict) else {}
    return KEY in content or any(each.recognize(content) for each in plugins.notations())


def refuse_options(target: str, options: Mapping[str, Any], notation: Notation | None) -> None:
    """Raises `UsageError` for options that the target's notation does not have."""
    own = {option.name for option in notation.options} if notation is not None else set()
    foreign = [name for name, value in options.items() if value and name not in own]
    if not foreign:
        return
    owners = [
        (option.flag, each.label)
        for each in plugins.notations()
        for option in each.options
        if option.name in foreign
    ]
    flags = " and ".join(flag for flag, _ in owners) or ", ".join(foreign)
    labels = " or a ".join(dict.fromkeys(label for _, label in owners))
    kind = notation.label if notation is not None else "workflow in Python"
    raise UsageError(
        f"{flags} cannot be used with {target}: it is a {kind}; the option is for a {labels}"
    )


def _recognized(file: SourceFile, able: list[Notation]) -> Notation:
    content = file.content if isinstance(file.content, dict) else {}
    by_name = {each.name: each for each in able}
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
    return bool(shutil.which(name) or bundled_program(BUNDLED.get(name, ())))


def _known(settings: Settings, also: Mapping[str, Agent]) -> dict[str, KnownAgent]:
    from signoff.app.agents import build_agents, known_agents

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
