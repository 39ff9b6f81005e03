"""Turns what a person names on the command line into a workflow.

A target is `package.module:NAME`, a file (`flow.py`, `flow.py:NAME`, or a file some
notation reads), `scheme:name` of a notation, or the name of a workflow that discovery
finds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from signoff.app.discovery import NAME, Discovery, Found, discover
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
    """A workflow, and how to find it again from any folder of the project."""

    workflow: Workflow
    place: str
    problems: tuple[Problem, ...] = ()
    """What was wrong with other workflows that discovery met on the way."""


def resolve(
    target: str,
    *,
    cwd: Path,
    home: Home | None = None,
    places: Sequence[str] = (),
    context: CompileContext | None = None,
) -> Target:
    """Returns the workflow a target names; a wrong name is answered with the right ones."""
    root = home.root if home is not None else cwd
    context = context or CompileContext(root, home.path if home is not None else None)
    make_importable([cwd, root])
    if match := _PYTHON_FILE.fullmatch(target):
        path = _existing(cwd / Path(match["path"]).expanduser())
        name = match["name"] or NAME
        refuse_options(target, context.options, None)
        workflow = _pick(import_file(path), name, path.name)
        return Target(workflow, _place_of(path, root, name))
    if _OTHER_FILE.fullmatch(target):
        path = _existing(cwd / Path(target).expanduser())
        return _written(path, context)
    if match := _NAMED.fullmatch(target):
        # A module without a package loses its name to a scheme; as a file it keeps its own.
        named = compile_named(match["scheme"], match["name"], context)
        if named is not None:
            return Target(named, target)
    if match := _MODULE.fullmatch(target):
        refuse_options(target, context.options, None)
        return Target(_from_module(match["module"], match["name"]), target)
    looked = discover(home, root, places, context)
    if not looked.called(target) and _is_file(cwd / target):
        # Called as no workflow is, it is meant as a file: which ones can be read is said there.
        return _written((cwd / target).resolve(), context)
    return _discovered(target, looked, context)


def _written(path: Path, context: CompileContext, problems: tuple[Problem, ...] = ()) -> Target:
    return Target(compile_path(path, context), _place_of(path, context.root), problems)


def _existing(path: Path) -> Path:
    if path.is_file():
        return path.resolve()
    beside = sorted(p.name for p in path.parent.glob(f"*{path.suffix}"))
    raise UnknownName("file", str(path), beside)


def _is_file(path: Path) -> bool:
    # A text that is too long for the name of a file is none.
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
        return _pick(import_named(module), name, module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"cannot import module {module!r} ({error}); "
            "run signoff from the folder that contains it, or install it"
        ) from error


def _pick(module: ModuleType, name: str, place: str) -> Workflow:
    value = getattr(module, name, None)
    if isinstance(value, Workflow):
        return value
    known = [n for n, v in vars(module).items() if isinstance(v, Workflow)]
    if hasattr(module, name):
        what = f"{name} is {type(value).__name__}, not a Workflow"
        raise InvalidWorkflow(place, [Problem(place, what, f"workflows in it: {_listed(known)}")])
    raise UnknownName(f"workflow in {place}", name, [f"{place}:{n}" for n in known])


def _discovered(name: str, looked: Discovery, context: CompileContext) -> Target:
    match looked.called(name):
        case [Found(workflow=workflow, path=path)] if path.suffix == ".py":
            refuse_options(name, context.options, None)
            return Target(workflow, _place_of(path, context.root, NAME), looked.problems)
        case [Found(path=path)]:
            # Read once more, as somebody who runs it: looking around is content with less.
            return _written(path, context, looked.problems)
        case [_, *_]:
            raise InvalidWorkflow(name, looked.problems)
    if looked.problems:
        raise InvalidWorkflow(name, looked.problems)
    if looked.names:
        raise UnknownName("workflow", name, looked.names)
    raise UsageError(
        f"unknown workflow {name!r}, and this project has no workflows with names; give a file "
        "(flow.py) or a module (package.module:NAME), or put the workflow into .signoff/flows/"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
