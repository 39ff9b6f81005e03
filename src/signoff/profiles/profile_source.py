"""What the source of a local profile reveals without running it: its name and description.

Two hundred profiles are listed much faster by their syntax trees than by importing them. A
source that does anything unusual reveals nothing here: only importing it shows whether it works
and what it is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import signoff.profiles
from signoff.documents.regular_files import read_regular
from signoff.profiles.profile import WorkflowProfile

REGISTER = "register"
_METADATA = "get_metadata"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


@dataclass(frozen=True)
class SourceReading:
    """What a profile's source reveals."""

    name: str = ""
    """The metadata's name; empty if only importing the source shows it."""
    description: str = ""


UNCLEAR = SourceReading()


def source_file(path: Path) -> Path:
    """Returns the file that is imported for a Python file or a package."""
    return path / "__init__.py" if path.is_dir() else path


def mentions(path: Path, name: str) -> bool:
    """Tells quickly whether a profile can have a name: a package's files are not searched."""
    if path.is_dir():
        return True
    return name.encode() in read_regular(path, None, follow=True)


def read_source(path: Path) -> SourceReading | None:
    """Reads a file or a package; None if it is not a profile, such as a module that one imports.

    Raises `SyntaxError`, `OSError` and `UnicodeDecodeError`.
    """
    module = _Module.read(source_file(path))
    if REGISTER not in module.text and _METADATA not in module.text:
        return None
    register = _follow(module, REGISTER)
    if register is None:
        return UNCLEAR if _METADATA in module.text else None
    if not isinstance(register.node, ast.FunctionDef):
        return UNCLEAR
    profile = _returned_class(register.module, register.node)
    if profile is None or not isinstance(profile.node, ast.ClassDef):
        return UNCLEAR
    modules = (module, register.module, profile.module)
    if not all(map(_is_plain, modules)) or not _is_complete(profile.node):
        return UNCLEAR
    return _metadata(profile.module, profile.node)


@dataclass(frozen=True)
class _Module:
    """A parsed source."""

    path: Path
    text: str
    tree: ast.Module

    @classmethod
    def read(cls, path: Path) -> _Module:
        text = read_regular(path, None, follow=True).decode("utf-8-sig")
        return cls(path, text, ast.parse(text, str(path)))


@dataclass(frozen=True)
class _Definition:
    """What a name means, and the module that defines it."""

    module: _Module
    node: ast.AST


def _follow(module: _Module, name: str) -> _Definition | None:
    """Returns the definition of a name, also if the module imports it from its own package."""
    for statement in reversed(module.tree.body):
        match statement:
            case ast.FunctionDef(name=own) | ast.ClassDef(name=own) if own == name:
                return _Definition(module, statement)
            case ast.Assign(targets=[ast.Name(id=own)]) if own == name:
                return _Definition(module, statement.value)
            case ast.ImportFrom() if _imports(statement, name):
                return _imported(module, statement, name)
    return None


def _imports(statement: ast.ImportFrom, name: str) -> bool:
    return any((each.asname or each.name) == name for each in statement.names)


def _imported(module: _Module, statement: ast.ImportFrom, name: str) -> _Definition:
    path = module.path.parent / f"{statement.module}.py"
    renamed = any(each.asname for each in statement.names)
    if statement.level != 1 or renamed or not path.is_file():
        return _Definition(module, statement)
    return _follow(_Module.read(path), name) or _Definition(module, statement)


def _returned_class(module: _Module, register: ast.FunctionDef) -> _Definition | None:
    """Returns the class that `register` returns."""
    returned = [node.value for node in ast.walk(register) if isinstance(node, ast.Return)]
    if len(returned) != 1 or not isinstance(returned[0], ast.Name):
        return None
    name = returned[0].id
    for statement in register.body:
        if isinstance(statement, ast.ImportFrom) and _imports(statement, name):
            return _imported(module, statement, name)
    return _follow(module, name)


def _is_complete(profile: ast.ClassDef) -> bool:
    """Whether a class that extends only the base class has everything that makes a profile."""
    if [ast.unparse(base).rpartition(".")[2] for base in profile.bases] != [
        WorkflowProfile.__name__
    ]:
        # What it inherits from another class is not known here.
        return bool(profile.bases)
    own = {node.name for node in profile.body if isinstance(node, ast.FunctionDef)}
    return WorkflowProfile.__abstractmethods__ <= own


def _is_plain(module: _Module) -> bool:
    """Whether a module only imports and defines, so that importing it can hardly fail."""
    return all(map(_cannot_fail, _executed(module.tree.body)))


def _executed(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.ClassDef):
            yield from _executed(statement.body)


def _cannot_fail(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import(names=names):
            return all(_is_available(each.name.partition(".")[0]) for each in names)
        case ast.ImportFrom(level=0, module=str(name), names=names):
            if name == signoff.profiles.__name__:
                return all(each.name in signoff.profiles.__all__ for each in names)
            return _is_available(name.partition(".")[0])
        case ast.ImportFrom(level=1) | ast.Expr(value=ast.Constant()) | ast.Pass():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]):
            return True
    return isinstance(statement, _DEFINITIONS)


@lru_cache(maxsize=256)
def _is_available(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:
        # A module that is being run as a program has no spec.
        return True


def _metadata(module: _Module, profile: ast.ClassDef) -> SourceReading:
    """Returns the name and the description in what `get_metadata` returns."""
    for method in profile.body:
        if isinstance(method, ast.FunctionDef) and method.name == _METADATA:
            returned = [node.value for node in ast.walk(method) if isinstance(node, ast.Return)]
            match [_value(module, each) for each in returned]:
                case [ast.Dict() as values]:
                    return SourceReading(
                        _text(module, values, "name"), _text(module, values, "description")
                    )
    return UNCLEAR


def _text(module: _Module, values: ast.Dict, key: str) -> str:
    # The last one counts, as in Python.
    for name, value in reversed(list(zip(values.keys, values.values, strict=True))):
        match name, _value(module, value):
            case ast.Constant(value=own), ast.Constant(value=str(text)) if own == key:
                return text
            case None, _:
                # What another mapping adds after it may replace it.
                return ""
    return ""


def _value(module: _Module, node: ast.expr | None) -> ast.AST | None:
    """Returns an expression, or what the value of the constant that it names."""
    if isinstance(node, ast.Name):
        definition = _follow(module, node.id)
        return definition.node if definition is not None else None
    return node
