"""Finds profiles by name: shipped ones, installed ones, and those of the project.

Listing them is cheap: shipped profiles are in a table, installed ones are known by the names of
their entry points, and local ones by their syntax trees. Only the profile that is used is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from signoff.documents.files import display_path
from signoff.documents.python_files import import_loose, make_importable, reported_errors
from signoff.documents.trust import Trust
from signoff.errors import ConfigError, InvalidWorkflow, Problem, UnknownName
from signoff.installed import entry_points
from signoff.notation import CompileContext
from signoff.profiles.factories import ProfileFactory
from signoff.profiles.profile import WorkflowProfile
from signoff.profiles.profile_source import REGISTER, mentions, read_source, source_file

if TYPE_CHECKING:
    import click

FOLDER = "profiles"
"""The folder of local profiles in the project's home."""

DESCRIPTIONS: Mapping[str, str] = {
    "jpa-mt": "Multi-tenant JPA entities and repositories from a table definition.",
    "python-module": "A Python module with its tests from a description.",
}
"""What the shipped profiles are for; listing them must not load them."""


class InvalidProfile(InvalidWorkflow):
    """The profile, or what the settings name for its sessions, has problems."""

    noun = "profile"


@dataclass(frozen=True)
class ProfileEntry:
    """A profile that was found, before it is loaded."""

    name: str
    """Its key; the file's name if only that is known."""
    origin: str
    """Where it comes from, for users."""
    load: Callable[[click.Group], type[WorkflowProfile]]
    """Loads it, and lets it add its commands to a group."""
    description: str = ""
    problem: Problem | None = None
    """Why it cannot be used."""
    is_named: bool = True
    """Whether its source shows its name; if not, only importing it does."""


def profile_names(context: CompileContext) -> list[str]:
    """Returns the names of all profiles that can be used."""
    return [each.name for each in all_profiles(context) if each.problem is None]


def find_profile(
    name: str, context: CompileContext, group: click.Group | None = None
) -> type[WorkflowProfile]:
    """Loads one profile, which may add its commands to `group`; raises `UnknownName`."""
    matching = [each for each in _all_named(_entries(context, name)) if each.name == name]
    if not matching:
        # Its source may not mention the name that it has.
        matching = [each for each in _all_named(_entries(context)) if each.name == name]
    if not matching:
        _refuse_unknown(name, context)
    if len(matching) > 1:
        raise InvalidProfile(name, [_duplicate(name, matching)])
    (entry,) = matching
    if entry.problem is not None:
        raise InvalidProfile(name, [entry.problem])
    return _load(entry, group if group is not None else _unused_group())


def listed_profiles(context: CompileContext) -> list[ProfileEntry]:
    """Returns every profile as far as its source shows it: nothing of a project is imported."""
    return _without_duplicates(_entries(context))


def all_profiles(context: CompileContext) -> list[ProfileEntry]:
    """Returns every profile, by name; one that cannot be used has its problem and hides no other.

    Local profiles are imported only if their source does not show what they are called.
    """
    return _without_duplicates(_all_named(_entries(context)))


def _all_named(entries: Iterable[ProfileEntry]) -> Iterator[ProfileEntry]:
    return (each if each.is_named else _imported(each) for each in entries)


def _without_duplicates(found: Iterable[ProfileEntry]) -> list[ProfileEntry]:
    entries = list(found)
    by_name: dict[str, list[ProfileEntry]] = {}
    for each in entries:
        by_name.setdefault(each.name, []).append(each)
    return sorted(
        (
            each
            if len(by_name[each.name]) == 1 or each.problem
            else replace(each, problem=_duplicate(each.name, by_name[each.name]))
            for each in entries
        ),
        key=lambda each: each.name,
    )


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
    for _ in profile_commands(context, _unused_group()):
        pass


def _entries(context: CompileContext, wanted: str = "") -> Iterator[ProfileEntry]:
    """Yields all profiles, or at least those that may have the wanted name."""
    registered = set(ProfileFactory.registered())
    for key in registered:
        yield ProfileEntry(key, "registered by this program", _registered(key))
    others = (*_shipped(), *_installed(), *_local(context, wanted))
    yield from (each for each in others if each.name not in registered)


def _shipped() -> Iterator[ProfileEntry]:
    for key, path in ProfileFactory.built_in.items():
        module = path.partition(":")[0]
        yield ProfileEntry(key, "shipped", _from_import_path(module), DESCRIPTIONS.get(key, ""))


def _installed() -> Iterator[ProfileEntry]:
    for key, path in entry_points(FOLDER).items():
        yield ProfileEntry(key, f"installed: {path}", _from_import_path(path))


def _local(context: CompileContext, wanted: str) -> Iterator[ProfileEntry]:
    folder = _folder(context)
    if folder is None:
        return
    make_importable([folder, context.root])
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("_", ".")):
            continue
        if path.suffix == ".py" or source_file(path).is_file():
            entry = _local_entry(path, wanted, context.trust)
            if entry is not None:
                yield entry


def _folder(context: CompileContext) -> Path | None:
    """Returns the folder of local profiles, if there is one."""
    # The section's model, which has checked the value, takes longer to load than a listing.
    named = context.settings.get("profiles", {}).get("dir")
    if named is None:
        folder = context.home / FOLDER if context.home is not None else None
        return folder if folder is not None and folder.is_dir() else None
    folder = context.root / Path(named).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"profiles.dir is {named!r}, but there is no folder {folder}")
    return folder


def _local_entry(path: Path, wanted: str, trust: Trust) -> ProfileEntry | None:
    origin, load = display_path(path), _from_file(path, trust)
    unnamed = ProfileEntry(path.stem, origin, load)
    try:
        if wanted and not mentions(path, wanted):
            return None
        reading = read_source(path)
    except SyntaxError as error:
        where = f"{display_path(Path(error.filename or path))}:{error.lineno}"
        return replace(unnamed, problem=Problem(where, f"SyntaxError: {error.msg}"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        return replace(unnamed, problem=Problem(origin, f"cannot be read: {error}"))
    if reading is None:
        return None
    if reading.name:
        return ProfileEntry(reading.name, origin, load, reading.description)
    return replace(unnamed, is_named=False)


def _imported(unnamed: ProfileEntry) -> ProfileEntry:
    """Returns an entry with the name and description that only importing it shows."""
    try:
        metadata = _metadata(unnamed.load(_unused_group()), unnamed.origin)
    except InvalidWorkflow as error:
        return replace(unnamed, problem=error.problems[0], is_named=True)
    description = str(metadata.get("description") or "")
    return ProfileEntry(metadata["name"], unnamed.origin, unnamed.load, description)


def _load(entry: ProfileEntry, group: click.Group) -> type[WorkflowProfile]:
    """Loads a profile and checks that it has the name under which it was found."""
    profile = entry.load(group)
    own = _metadata(profile, entry.origin)["name"]
    if own != entry.name:
        what = f"is found as {entry.name!r}, but its metadata's name is {own!r}"
        problem = Problem(entry.origin, what, "use the same name in both places")
        raise InvalidProfile(entry.name, [problem])
    return profile


def _unused_group() -> click.Group:
    """Returns a group that takes the commands of a profile where none are needed."""
    import click

    return click.Group()


def _refuse_unknown(name: str, context: CompileContext) -> NoReturn:
    """Raises an error that lists the known profiles, and those that could not be read."""
    entries = all_profiles(context)
    known = [each.name for each in entries if each.problem is None]
    problems = [each.problem for each in entries if each.problem is not None]
    if not problems:
        raise UnknownName("profile", name, known)
    unknown = Problem(f"profile {name!r}", "is unknown", f"valid names: {', '.join(known)}")
    raise InvalidProfile(name, [unknown, *problems])


def _duplicate(name: str, entries: Sequence[ProfileEntry]) -> Problem:
    origins = " and ".join(each.origin for each in entries)
    return Problem(f"profile {name!r}", f"is defined twice: {origins}", "rename or remove one")


def _registered(key: str) -> Callable[[click.Group], type[WorkflowProfile]]:
    return lambda _group: ProfileFactory.get_class(key)


def _from_import_path(path: str) -> Callable[[click.Group], type[WorkflowProfile]]:
    def load(group: click.Group) -> type[WorkflowProfile]:
        module_name, _, attribute = path.partition(":")
        with reported_errors(path):
            module = import_module(module_name)
            return _profile_of(getattr(module, attribute) if attribute else module, group, path)

    return load


def _from_file(path: Path, trust: Trust) -> Callable[[click.Group], type[WorkflowProfile]]:
    def load(group: click.Group) -> type[WorkflowProfile]:
        trust(FOLDER)
        origin = display_path(path)
        module = import_loose(source_file(path))
        with reported_errors(origin):
            return _profile_of(module, group, origin)

    return load


def _profile_of(value: Any, group: click.Group, origin: str) -> type[WorkflowProfile]:
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


def _metadata(profile: type[WorkflowProfile], origin: str) -> Mapping[str, Any]:
    with reported_errors(origin):
        metadata = profile.get_metadata()
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not name:
        what = f"get_metadata() of {profile.__name__} has no name"
        raise InvalidProfile(origin, [Problem(origin, what, "return a mapping with `name`")])
    return metadata
