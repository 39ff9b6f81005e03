"""Registries of profiles and providers, by key.

Built-in entries are import paths and are loaded when they are used, so listing the keys is cheap
and nothing is registered at import.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

import click

from signoff.agents.kinds import WITHOUT_SETTINGS
from signoff.documents.python_files import reported_errors
from signoff.errors import InvalidWorkflow, Problem, UnknownName
from signoff.installed import entry_points
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
        [*WITHOUT_SETTINGS, *AGENT_ALIASES], "signoff.profiles.provider_agents:AgentProvider"
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
        "manual": "signoff.profiles.approvers:ManualApprovalProvider",
        "skip": "signoff.profiles.approvers:SkipApprovalProvider",
    }


class StandardsProviderFactory(ProfileRegistry[StandardsProvider]):
    """Creates providers of standards; pass the profile's configuration to `create`."""

    kind = "standards provider"
    base = StandardsProvider
    built_in: ClassVar[Mapping[str, str]] = {
        "scoped-layer-fs": "signoff.profiles.standards:ScopedLayerStandards",
        "yaml-rules": "signoff.profiles.standards:YamlRulesStandards",
    }
