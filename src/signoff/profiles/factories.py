"""Registers profiles and providers by key, and finds profiles by name.

Built-in entries are import paths and are loaded when they are used, so listing the keys is cheap
and nothing is registered at import.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

import click

from signoff.agents.kinds import WITHOUT_SETTINGS
from signoff.core.errors import ConfigError, InvalidWorkflow, Problem, UnknownName
from signoff.documents.discovery import Definition, checked_names, find_definition, reading_problem
from signoff.documents.entry_points import entry_points
from signoff.documents.files import display_path
from signoff.documents.python_files import import_loose, make_importable, reported_errors
from signoff.documents.regular_files import read_regular
from signoff.documents.trust import Trust
from signoff.notation import CompileContext
from signoff.profiles.profile import WorkflowProfile
from signoff.profiles.providers import AIProvider, ApprovalProvider, StandardsProvider

T = TypeVar("T")

GROUP = "profiles"
"""The group of the entry points of installed profiles, after `signoff.`."""
REGISTER = "register"
"""The function of a module that returns its profile."""

AGENT_ALIASES: Mapping[str, str] = {"claude-code": "claude"}
"""Other names of agents."""

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class InvalidProfile(InvalidWorkflow):
    """The profile, or what the settings name for its sessions, has problems."""

    noun = "profile"


class ProfileRegistry(Generic[T]):
    """What the four factories have in common; used through the class, never instantiated."""

    kind: ClassVar[str]
    """What it creates, for messages."""
    base: ClassVar[type]
    """The class that every registered class extends."""
    built_in: ClassVar[Mapping[str, str]] = {}
    """Import paths of the shipped classes."""
    _registered: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(cls) -> None:
        """Gives each factory a registry of its own."""
        # Without this, all factories would share the dictionary of their base class.
        cls._registered = {}

    @classmethod
    def register(cls, key: str, implementation: type[T]) -> None:
        """Adds a class under a key; it replaces an earlier one of that key.

        Raises `TypeError` for a class that could never be created, `ValueError` for a bad key.
        """
        # Keys appear in settings, options and stored runs, where blanks and slashes would need
        # quoting or mean something else.
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ValueError(
                f"{key!r} is not a valid key; use letters, digits, '.', '_' and "
                "'-', starting with a letter or digit"
            )
        if not (isinstance(implementation, type) and issubclass(implementation, cls.base)):
            raise TypeError(f"{cls.kind} {key!r} must be a subclass of {cls.base.__name__}")
        # Found at registration: a class that lacks a method would fail in the middle of a session,
        # at its first call.
        missing: frozenset[str] = getattr(implementation, "__abstractmethods__", frozenset())
        if missing:
            names = ", ".join(sorted(missing))
            raise TypeError(f"{cls.kind} {key!r} does not implement: {names}")
        cls._registered[key] = implementation

    @classmethod
    def get_class(cls, key: str) -> type[T]:
        """Returns the class of a key; raises `UnknownName`, which lists the known keys."""
        if key in cls._registered:
            return cls._registered[key]
        path = cls.built_in.get(key)
        if path is None:
            raise UnknownName(cls.kind, key, cls.keys())
        implementation: type[T] = resolve_name(path)
        return implementation

    @classmethod
    def create(cls, key: str, *args: Any, **kwargs: Any) -> T:
        """Returns a new object of a key's class; the rest goes to its constructor."""
        return cls.get_class(key)(*args, **kwargs)

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Returns every known key, sorted."""
        return tuple(sorted({*cls.built_in, *cls._registered}))

    @classmethod
    def registered(cls) -> tuple[str, ...]:
        """Returns the keys that this process registered, sorted."""
        return tuple(sorted(cls._registered))


class ProfileFactory(ProfileRegistry[WorkflowProfile]):
    """Creates profiles: registered, shipped and installed ones."""

    kind = "profile"
    base = WorkflowProfile
    built_in: ClassVar[Mapping[str, str]] = {
        "jpa-mt": "signoff.profiles.library.jpa_mt.profile:JpaMtProfile",
        "python-module": "signoff.profiles.library.python_module.profile:PythonModuleProfile",
    }

    @classmethod
    def get_class(cls, key: str) -> type[WorkflowProfile]:
        """Returns the class of a key; raises `UnknownName`, or `InvalidProfile` if it is none."""
        path = entry_points(GROUP).get(key)
        if path is None or key in cls._registered or key in cls.built_in:
            return super().get_class(key)
        return imported_profile(path, click.Group())

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Returns every known key, sorted; local profiles have none until they are registered."""
        return tuple(sorted({*super().keys(), *entry_points(GROUP)}))


def imported_profile(path: str, group: click.Group) -> type[WorkflowProfile]:
    """Returns the profile of an entry point, which may add its commands to a group."""
    module_name, _, attribute = path.partition(":")
    with reported_errors(path):
        module = import_module(module_name)
        return profile_of(getattr(module, attribute) if attribute else module, group, path)


def profile_of(value: Any, group: click.Group, origin: str) -> type[WorkflowProfile]:
    """Returns the class that a module, its `register` function or an entry point means."""
    if isinstance(value, ModuleType):
        value = getattr(value, REGISTER, None)
        if value is None:
            what = f"has no function {REGISTER}(cli_group) that returns the profile's class"
            raise InvalidProfile(origin, [Problem(origin, what)])
    profile = value if isinstance(value, type) else value(group)
    if not (isinstance(profile, type) and issubclass(profile, WorkflowProfile)):
        what = f"{REGISTER}(cli_group) returns {profile!r:.80}, not a subclass of WorkflowProfile"
        raise InvalidProfile(origin, [Problem(origin, what)])
    if missing := ", ".join(sorted(profile.__abstractmethods__)):
        what = f"{profile.__name__} does not implement: {missing}"
        raise InvalidProfile(origin, [Problem(origin, what)])
    return profile


class AIProviderFactory(ProfileRegistry[AIProvider]):
    """Creates providers that respond to prompts: registered ones, and agents by their names."""

    kind = "AI provider"
    base = AIProvider
    built_in: ClassVar[Mapping[str, str]] = dict.fromkeys(
        [*WITHOUT_SETTINGS, *AGENT_ALIASES], "signoff.profiles.providers:AgentProvider"
    )

    @classmethod
    def create(cls, key: str, *args: Any, **kwargs: Any) -> AIProvider:
        """Returns a provider; `claude-code` means the agent `claude`."""
        if key in cls.built_in and key not in cls._registered:
            return super().create(key, AGENT_ALIASES.get(key, key))
        return super().create(key, *args, **kwargs)


class ApprovalProviderFactory(ProfileRegistry[ApprovalProvider]):
    """Creates approvers."""

    kind = "approval provider"
    base = ApprovalProvider
    built_in: ClassVar[Mapping[str, str]] = {
        "manual": "signoff.profiles.providers:ManualApprovalProvider",
        "skip": "signoff.profiles.providers:SkipApprovalProvider",
    }


class StandardsProviderFactory(ProfileRegistry[StandardsProvider]):
    """Creates providers of standards; pass the profile's configuration to `create`."""

    kind = "standards provider"
    base = StandardsProvider
    built_in: ClassVar[Mapping[str, str]] = {
        "scoped-layer-fs": "signoff.profiles.standards:ScopedLayerStandards",
        "yaml-rules": "signoff.profiles.standards:YamlRulesStandards",
    }


# Finds profiles by name: shipped ones, installed ones, and those of the project.
#
# Listing them imports nothing of a project: installed profiles are known by the names of their
# entry points, local ones by their syntax trees. Only the profile that is used is loaded.


FOLDER = "profiles"
"""The folder of local profiles in the project's home."""

DESCRIPTIONS: Mapping[str, str] = {
    "jpa-mt": "Multi-tenant JPA entities and repositories from a table definition.",
    "python-module": "A Python module with its tests from a description.",
}
"""What the shipped profiles are for; listing them must not load them."""

UNKNOWN_UNTIL_USED = "unknown until used"
"""The description of a local profile whose source does not state one as a text."""

_METADATA = "get_metadata"


@dataclass(frozen=True)
class ProfileEntry(Definition):
    """A profile that was found; its name is the file's if its source does not state one."""

    load: Callable[[click.Group], type[WorkflowProfile]] = field(kw_only=True)
    """Loads it, and lets it add its commands to a group."""


def profile_names(context: CompileContext) -> list[str]:
    """Returns the names of all profiles that can be used."""
    return [each.name for each in all_profiles(context) if each.problem is None]


def find_profile(name: str, context: CompileContext) -> type[WorkflowProfile]:
    """Loads one profile; raises `UnknownName`, or `InvalidProfile` if it cannot be used."""
    entry = find_definition(name, all_profiles(context), "profile", InvalidProfile)
    return _load(entry, click.Group())


def all_profiles(context: CompileContext) -> list[ProfileEntry]:
    """Returns every profile, by name; one that cannot be used has its problem and hides no other.

    Nothing of the project is imported: what is wrong beyond the syntax shows when it is used.
    """
    return checked_names(_entries(context), "profile")


def profile_commands(context: CompileContext, group: click.Group) -> Iterator[ProfileEntry]:
    """Loads one profile after another; each is yielded once its commands are in `group`.

    A profile that cannot be loaded is yielded with its problem.
    """
    for each in all_profiles(context):
        if each.problem is None:
            try:
                _load(each, group)
            except InvalidWorkflow as error:
                yield replace(each, problem=error.problems[0])
                continue
        yield each


def load_profiles(context: CompileContext) -> None:
    """Loads every profile that can be loaded: profiles may register providers and approvers."""
    for _ in profile_commands(context, click.Group()):
        pass


def _entries(context: CompileContext) -> Iterator[ProfileEntry]:
    registered = ProfileFactory.registered()
    for key in registered:
        yield ProfileEntry(key, "registered by this program", load=partial(_from_factory, key))
    others = (*_packaged(), *_local(context))
    # A class that the program registers replaces what has the same name.
    yield from (each for each in others if each.name not in registered)


def _packaged() -> Iterator[ProfileEntry]:
    for key in ProfileFactory.built_in:
        load = partial(_from_factory, key)
        yield ProfileEntry(key, "shipped", DESCRIPTIONS.get(key, ""), load=load)
    for key, path in entry_points(GROUP).items():
        yield ProfileEntry(key, f"installed: {path}", load=partial(imported_profile, path))


def _from_factory(key: str, _group: click.Group) -> type[WorkflowProfile]:
    return ProfileFactory.get_class(key)


def _local(context: CompileContext) -> Iterator[ProfileEntry]:
    folder = _folder(context)
    if folder is None:
        return
    make_importable([folder, context.root])
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("_", ".")):
            continue
        if path.suffix == ".py" or _source_file(path).is_file():
            entry = _local_entry(path, context.trust)
            if entry is not None:
                yield entry


def _folder(context: CompileContext) -> Path | None:
    """Returns the folder of local profiles, if there is one."""
    named = context.settings.get("profiles", {}).get("dir")
    if named is None:
        folder = context.home / FOLDER if context.home is not None else None
        return folder if folder is not None and folder.is_dir() else None
    folder = context.root / Path(named).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"profiles.dir is {named!r}, but there is no folder {folder}")
    return folder


def _source_file(path: Path) -> Path:
    """Returns the file that is imported for a Python file or a package."""
    return path / "__init__.py" if path.is_dir() else path


def _local_entry(path: Path, trust: Trust) -> ProfileEntry | None:
    """Returns what a file or a package shows of its profile; None if it is none, but a helper."""
    origin = display_path(path)
    entry = ProfileEntry(path.stem, origin, load=partial(_from_file, path, trust))
    try:
        tree = _parsed(_source_file(path))
        others = [_parsed(each) for each in path.glob("*.py")] if path.is_dir() else []
    except SyntaxError as error:
        # It may be in another file of the package.
        file = display_path(Path(error.filename or path))
        return replace(entry, problem=reading_problem(error, file))
    except (OSError, ValueError) as error:
        return replace(entry, problem=reading_problem(error, origin))
    stated = [_stated(node) for each in (tree, *others) for node in ast.walk(each)]
    found = [each for each in stated if each is not None]
    if not _defines_register(tree):
        if not found:
            return None
        what = f"has no function {REGISTER}(cli_group) that returns the profile's class"
        return replace(entry, problem=Problem(origin, what))
    # A file with two profiles does not show which of them `register` returns.
    name, description = found[0] if len({*found}) == 1 else ("", "")
    return replace(entry, name=name or path.stem, description=description or UNKNOWN_UNTIL_USED)


def _parsed(file: Path) -> ast.Module:
    return ast.parse(read_regular(file, None, follow=True).decode("utf-8-sig"), str(file))


def _defines_register(tree: ast.Module) -> bool:
    """Tells whether a module has the name `register`, however it got it."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) if name == REGISTER:
                return True
            case ast.ImportFrom(names=names) if any(
                (each.asname or each.name) == REGISTER for each in names
            ):
                return True
            case ast.Assign(targets=[ast.Name(id=name)]) if name == REGISTER:
                return True
    return False


def _stated(node: ast.AST) -> tuple[str, str] | None:
    """Returns the name and the description that `get_metadata` states as texts."""
    if not (isinstance(node, ast.FunctionDef) and node.name == _METADATA):
        return None
    texts = {
        key.value: value.value
        for each in ast.walk(node)
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Dict)
        for key, value in zip(each.value.keys, each.value.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
    }
    return str(texts.get("name") or ""), str(texts.get("description") or "")


def _from_file(path: Path, trust: Trust, group: click.Group) -> type[WorkflowProfile]:
    trust(FOLDER)
    origin = display_path(path)
    module = import_loose(_source_file(path))
    with reported_errors(origin):
        return profile_of(module, group, origin)


def _load(entry: ProfileEntry, group: click.Group) -> type[WorkflowProfile]:
    """Loads a profile and checks that it has the name under which it was found."""
    profile = entry.load(group)
    own = _metadata(profile, entry.origin)["name"]
    if own != entry.name:
        what = f"is found as {entry.name!r}, but its metadata's name is {own!r}"
        remedy = "return the name as a text in get_metadata(), the same in both places"
        raise InvalidProfile(entry.name, [Problem(entry.origin, what, remedy)])
    return profile


def _metadata(profile: type[WorkflowProfile], origin: str) -> Mapping[str, Any]:
    with reported_errors(origin):
        metadata = profile.get_metadata()
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not name:
        what = f"get_metadata() of {profile.__name__} has no name"
        raise InvalidProfile(origin, [Problem(origin, what, "return a mapping with `name`")])
    return metadata
