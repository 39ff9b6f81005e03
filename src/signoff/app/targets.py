"""Finds the workflow that a target on the command line names.

A target is `package.module:NAME`, a file (`flow.py`, `flow.py:NAME`, or a file of a
notation), `scheme:name` of a notation, or the name of a workflow that discovery finds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from signoff.app.discovery import NAME, DiscoveredWorkflow, Discovery, discover
from signoff.app.home import Home
from signoff.app.loading import import_file, import_named, make_importable
from signoff.app.notations import compile_named, compile_path, refuse_options
from signoff.core.workflow import Workflow
from signoff.errors import InvalidWorkflow, Problem, UnknownName, UsageError
from signoff.notation import CompileContext

_PYTHON_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<name>\w+))?")
_MODULE = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>\w+)")
_NAMED = re.compile(r"(?P<scheme>[a-z][a-z0-9_-]*):(?P<name>\S+)")
_OTHER_FILE = re.compile(r".+\.(ya?ml|json|toml|md)")


@dataclass(frozen=True)
class Target:
    """A workflow, and a target that finds it again from the project's root."""

    workflow: Workflow
    place: str
    problems: tuple[Problem, ...] = ()
    """Problems of other workflows that discovery found."""


def resolve(
    target: str,
    *,
    cwd: Path,
    home: Home | None = None,
    places: Sequence[str] = (),
    context: CompileContext | None = None,
) -> Target:
    """Returns the workflow a target names; an unknown name is reported with the valid ones."""
    root = home.root if home is not None else cwd
    context = context or CompileContext(root, home.path if home is not None else None)
    make_importable([cwd, root])
    if match := _PYTHON_FILE.fullmatch(target):
        path = _existing(cwd / Path(match["path"]).expanduser())
        name = match["name"] or NAME
        refuse_options(target, context.options, None)
        workflow = _find_in_module(import_file(path), name, path.name)
        return Target(workflow, _place_of(path, root, name))
    if _OTHER_FILE.fullmatch(target):
        path = _existing(cwd / Path(target).expanduser())
        return _compile_file(path, context)
    if match := _NAMED.fullmatch(target):
        # A scheme wins over a top-level module of the same name, which can be given as a file.
        named = compile_named(match["scheme"], match["name"], context)
        if named is not None:
            return Target(named, target)
    if match := _MODULE.fullmatch(target):
        refuse_options(target, context.options, None)
        return Target(_from_module(match["module"], match["name"]), target)
    discovery = discover(home, root, places, context)
    if not discovery.matching(target) and _is_file(cwd / target):
        # It is not a workflow's name, so it is a file; the error lists the supported suffixes.
        return _compile_file((cwd / target).resolve(), context)
    return _discovered(target, discovery, context)


def _compile_file(
    path: Path, context: CompileContext, problems: tuple[Problem, ...] = ()
) -> Target:
    return Target(compile_path(path, context), _place_of(path, context.root), problems)


def _existing(path: Path) -> Path:
    if path.is_file():
        return path.resolve()
    siblings = sorted(p.name for p in path.parent.glob(f"*{path.suffix}"))
    raise UnknownName("file", str(path), siblings)


def _is_file(path: Path) -> bool:
    # A text that is too long for a file name raises an OSError.
    with suppress(OSError):
        return path.is_file()
    return False


def _place_of(path: Path, root: Path, name: str = "") -> str:
    tail = f":{name}" if name else ""
    resolved = root.resolve()
    if path.is_relative_to(resolved):
        return f"{path.relative_to(resolved).as_posix()}{tail}"
    return f"{path}{tail}"


def _from_module(module: str, name: str) -> Workflow:
    try:
        return _find_in_module(import_named(module), name, module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"cannot import module {module!r} ({error}); "
            "run signoff from the folder that contains it, or install it"
        ) from error


def _find_in_module(module: ModuleType, name: str, place: str) -> Workflow:
    value = getattr(module, name, None)
    if isinstance(value, Workflow):
        return value
    known = [n for n, v in vars(module).items() if isinstance(v, Workflow)]
    if hasattr(module, name):
        what = f"{name} is {type(value).__name__}, not a Workflow"
        remedy = f"workflows in it: {', '.join(known) or 'none'}"
        raise InvalidWorkflow(place, [Problem(place, what, remedy)])
    raise UnknownName(f"workflow in {place}", name, [f"{place}:{n}" for n in known])


def _discovered(name: str, discovery: Discovery, context: CompileContext) -> Target:
    match discovery.matching(name):
        case [DiscoveredWorkflow(workflow=workflow, path=path)] if path.suffix == ".py":
            refuse_options(name, context.options, None)
            return Target(workflow, _place_of(path, context.root, NAME), discovery.problems)
        case [DiscoveredWorkflow(path=path)]:
            # Compiled again with the options of this run, which discovery does not use.
            return _compile_file(path, context, discovery.problems)
        case [_, *_]:
            raise InvalidWorkflow(name, discovery.problems)
    if discovery.problems:
        raise InvalidWorkflow(name, discovery.problems)
    if discovery.names:
        raise UnknownName("workflow", name, discovery.names)
    raise UsageError(
        f"unknown workflow {name!r}, and this project has no workflows with names; give a file "
        "(flow.py) or a module (package.module:NAME), or put the workflow into .signoff/flows/"
    )
