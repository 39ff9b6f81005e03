"""Turns a model's complaints into problems: the file and line, what is wrong, what would be right.

What is right comes from the model itself: the names of its fields, and the description
of the field that was got wrong.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic.fields import FieldInfo

from signoff.errors import Problem

Path = tuple[str | int, ...]

ADVICE = "advice"
"""The type of a `PydanticCustomError` whose message is to be shown instead of the description."""


@dataclass(frozen=True)
class Mistake:
    """Something wrong at one place of a document."""

    path: Path
    what: str
    remedy: str = ""

    def problem(self, at: Callable[[Path], str]) -> Problem:
        """Returns it with the place in words."""
        return Problem(at(self.path), self.what, self.remedy)


def mistakes_of(error: ValidationError, model: type[BaseModel]) -> list[Mistake]:
    """Returns every mistake that a model found."""
    return mistakes_in(error.errors(include_url=False), model)


def mistakes_in(said: Iterable[Mapping[str, Any]], model: type[BaseModel]) -> list[Mistake]:
    """Returns the mistakes of complaints, their places seen from the model."""
    return list(dict.fromkeys(_mistake(mistake, model) for mistake in said))


def line_of(problem: Problem) -> int:
    """Returns the line a problem stands in, to sort by; 0 where it names none."""
    number = problem.where.rpartition(":")[2]
    return int(number) if number.isdigit() else 0


def format_path(path: Iterable[str | int]) -> str:
    """Returns a path as people write it: `workflow[1].execution`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")


def unknown_key(name: str, valid: Sequence[str], elsewhere: str = "") -> tuple[str, str]:
    """Returns the complaint about a key nobody knows, and the keys that are known."""
    close = difflib.get_close_matches(name, valid, n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    hint = f"{elsewhere}; " if elsewhere else meant
    return f"unknown key {name!r}", f"{hint}valid: {', '.join(valid)}"


def _mistake(said: Mapping[str, Any], model: type[BaseModel]) -> Mistake:
    place = _walk(model, said["loc"])
    path, kind = place.path, said["type"]
    if kind == "extra_forbidden" and place.model is not None:
        name = str(path[-1])
        elsewhere = getattr(place.model, "misplaced_keys", {}).get(name, "")
        return Mistake(path, *unknown_key(name, list(_keys(place.model)), elsewhere))
    if kind == "missing":
        return Mistake(path, f"{format_path(path)} is missing", place.description)
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _wrong_kind(said, place)
    remedy = said["msg"] if kind == ADVICE else place.description
    return Mistake(path, f"{format_path(path)} is {said['input']!r:.60}", remedy)


def _wrong_kind(said: Mapping[str, Any], place: _Place) -> Mistake:
    key = said["ctx"]["discriminator"].strip("'")
    path = (*place.path, key)
    remedy = f"one of: {', '.join(place.kinds)}"
    if said["type"] == "union_tag_not_found":
        return Mistake(path, f"{format_path(path)} is missing", remedy)
    return Mistake(path, f"{format_path(path)} is {said['ctx']['tag']!r:.60}", remedy)


@dataclass(frozen=True)
class _Place:
    path: Path
    description: str
    model: type[BaseModel] | None
    """The mapping around it, where that has known keys."""
    kinds: tuple[str, ...]
    """What the mapping at this place may be, where it may be one of several."""


def _walk(model: type[BaseModel], loc: Sequence[str | int]) -> _Place:
    """Follows a complaint's way through the model; the tags of unions are no part of the path."""
    path: list[str | int] = []
    description = ""
    around: type[BaseModel] | None = None
    here: Any = model
    for part in loc:
        if part == "[key]":
            continue
        here, description = _unwrapped(here, description)
        members = _members(here)
        chosen = next((m for m in members if part in set(_tags(m))), None)
        if chosen is not None:
            here = chosen
            continue
        path.append(part)
        around, here, description = _step(here, members, part, description)
    here, description = _unwrapped(here, description)
    kinds = tuple(str(tag) for member in _members(here) for tag in _tags(member))
    return _Place(tuple(path), description, around, kinds)


def _step(
    here: Any, members: Sequence[Any], part: str | int, description: str
) -> tuple[type[BaseModel] | None, Any, str]:
    section = next((m for m in (here, *members) if _is_model(m)), None)
    if section is not None:
        named = _keys(section).get(str(part))
        if named is None:
            return section, None, description
        return section, named.annotation, named.description or description
    container = next((m for m in (here, *members) if get_origin(m) in (list, dict, tuple)), None)
    arguments = get_args(container)
    return None, arguments[-1] if arguments else None, description


def _keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Returns a model's fields by what they are called in files."""
    return {named.alias or name: named for name, named in model.model_fields.items()}


def _unwrapped(here: Any, description: str) -> tuple[Any, str]:
    while get_origin(here) is Annotated:
        here, *notes = get_args(here)
        said = (n.description for n in notes if isinstance(n, FieldInfo) and n.description)
        description = next(said, description)
    return here, description


def _members(here: Any) -> list[Any]:
    """Returns what a union is of, unions inside it taken apart and `None` left out."""
    if get_origin(here) not in (Union, UnionType):
        return []
    found: list[Any] = []
    for member in get_args(here):
        inner = _members(_unwrapped(member, "")[0])
        if member is not NoneType:
            found.extend(inner or [member])
    return found


def _tags(member: Any) -> Iterator[str | int]:
    if get_origin(member) is Annotated:
        yield from (note.tag for note in get_args(member)[1:] if isinstance(note, Tag))
    elif _is_model(member):
        for named in member.model_fields.values():
            if get_origin(named.annotation) is Literal and named.is_required():
                yield from get_args(named.annotation)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
