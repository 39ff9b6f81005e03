"""Turns pydantic errors into problems: the file and line, what is wrong, and how to fix it.

The fix comes from the model itself: the names of its fields, and the description of the
invalid field, which says what is valid there.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from signoff.core.errors import Problem

Path = tuple[str | int, ...]

SIMILAR = 0.72
"""How similar a key must be to be suggested: `script` is no typo of `description`."""
ADVICE = "advice"
"""The type of a `PydanticCustomError` whose message replaces the field's description."""


@dataclass(frozen=True)
class Mistake:
    """One invalid value of a document."""

    path: Path
    what: str
    remedy: str = ""

    def problem(self, locate: Callable[[Path], str]) -> Problem:
        """Returns it as a problem; `locate` turns the path into a location such as file:line."""
        return Problem(locate(self.path), self.what, self.remedy)


def mistakes_of(error: ValidationError, model: type[BaseModel]) -> list[Mistake]:
    """Returns every mistake of a validation error, without duplicates."""
    details = error.errors(include_url=False)
    return list(dict.fromkeys(_mistake(each, model) for each in details))


def line_of(problem: Problem) -> int:
    """Returns the line of a problem, to sort by; 0 if its location has none."""
    number = problem.where.rpartition(":")[2]
    return int(number) if number.isdigit() else 0


def format_path(path: Iterable[str | int]) -> str:
    """Returns a path as users write it: `workflow[1].execution`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")


def unknown_key(name: str, valid: Sequence[str], advice: str = "") -> tuple[str, str]:
    """Returns the message about an unknown key, and a remedy that lists the valid keys.

    `advice` says where the key belongs, if it is valid somewhere else.
    """
    close = difflib.get_close_matches(name, valid, n=1, cutoff=SIMILAR)
    suggestion = f"did you mean {close[0]!r}? " if close else ""
    hint = f"{advice}; " if advice else suggestion
    return f"unknown key {name!r}", f"{hint}valid: {', '.join(valid)}"


def _mistake(error: Mapping[str, Any], model: type[BaseModel]) -> Mistake:
    field = _find_field(model, error["loc"])
    path, kind = field.path, error["type"]
    if kind == "extra_forbidden" and field.section is not None:
        name = str(path[-1])
        advice = getattr(field.section, "misplaced_keys", {}).get(name, "")
        return Mistake(path, *unknown_key(name, list(_keys(field.section)), advice))
    if kind == "missing":
        return Mistake(path, f"{format_path(path)} is missing", field.description)
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _invalid_tag(error, field)
    remedy = error["msg"] if kind == ADVICE else field.description
    return Mistake(path, f"{format_path(path)} is {error['input']!r:.60}", remedy)


def _invalid_tag(error: Mapping[str, Any], field: _InvalidField) -> Mistake:
    key = error["ctx"]["discriminator"].strip("'")
    path = (*field.path, key)
    remedy = f"one of: {', '.join(field.tags)}"
    if error["type"] == "union_tag_not_found":
        return Mistake(path, f"{format_path(path)} is missing", remedy)
    return Mistake(path, f"{format_path(path)} is {error['ctx']['tag']!r:.60}", remedy)


@dataclass(frozen=True)
class _InvalidField:
    path: Path
    description: str
    section: type[BaseModel] | None
    """The model of the mapping that contains it; None for free keys."""
    tags: tuple[str, ...]
    """The valid tags, if the field is a tagged union."""


def _find_field(model: type[BaseModel], loc: Sequence[str | int]) -> _InvalidField:
    """Finds the field that an error is about.

    Pydantic's `loc` also contains the tags of the unions it went through. They do not occur
    in the file, so the annotations are followed along to tell them from keys.
    """
    path: list[str | int] = []
    description = ""
    section: type[BaseModel] | None = None
    annotation: Any = model
    for part in loc:
        if part == "[key]":
            continue
        annotation, description = _unwrap(annotation, description)
        members = _members(annotation)
        tagged = next((m for m in members if part in set(_tags(m))), None)
        if tagged is not None:
            annotation = tagged
            continue
        path.append(part)
        section, annotation, description = _descend((annotation, *members), part, description)
    annotation, description = _unwrap(annotation, description)
    tags = tuple(str(tag) for member in _members(annotation) for tag in _tags(member))
    return _InvalidField(tuple(path), description, section, tags)


def _descend(
    candidates: Sequence[Any], part: str | int, description: str
) -> tuple[type[BaseModel] | None, Any, str]:
    """Returns the section that contains a key, and the key's annotation and description."""
    forms = [_unwrap(candidate, "")[0] for candidate in candidates]
    section = next((form for form in forms if _is_model(form)), None)
    if section is not None:
        field = _keys(section).get(str(part))
        if field is None:
            return section, None, description
        form = _form_in_file(field.annotation, field.metadata)
        return section, form, field.description or description
    container = next((form for form in forms if get_origin(form) in (list, dict, tuple)), None)
    # The values of a mapping are its last argument; a tuple of any length ends with `...`.
    arguments = [argument for argument in get_args(container) if argument is not Ellipsis]
    return None, arguments[-1] if arguments else None, description


def _form_in_file(annotation: Any, metadata: Iterable[Any]) -> Any:
    """Returns what a value is in the file, where a validator builds another value from it."""
    forms = (m.json_schema_input_type for m in metadata if isinstance(m, BeforeValidator))
    return next((form for form in forms if form is not PydanticUndefined), annotation)


def _keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Returns a model's fields by their names in files."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _unwrap(annotation: Any, description: str) -> tuple[Any, str]:
    """Removes `Annotated`, and takes over the description that it may carry."""
    while get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
        infos = (m.description for m in metadata if isinstance(m, FieldInfo) and m.description)
        description = next(infos, description)
        annotation = _form_in_file(annotation, metadata)
    return annotation, description


def _members(annotation: Any) -> list[Any]:
    """Returns the members of a union and of the unions inside it, without `None`."""
    if get_origin(annotation) not in (Union, UnionType):
        return []
    members: list[Any] = []
    for member in get_args(annotation):
        # A member may itself be an annotated union, as a tagged union inside an optional is.
        inner = _members(_unwrap(member, "")[0])
        if member is not NoneType:
            members.extend(inner or [member])
    return members


def _tags(member: Any) -> Iterator[str | int]:
    if get_origin(member) is Annotated:
        yield from (m.tag for m in get_args(member)[1:] if isinstance(m, Tag))
    elif _is_model(member):
        for field in member.model_fields.values():
            if get_origin(field.annotation) is Literal and field.is_required():
                yield from get_args(field.annotation)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


# Removes invalid values from a document, so that the rest of it can still be checked.


def without_paths(raw: dict[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """Returns a copy without the innermost existing key of each path."""
    rest: dict[str, Any] = _copied(raw)
    # Find all keys before removing any: once a key is gone, a second path to it would end
    # one level higher and remove too much.
    keys = [entry for path in paths if (entry := _innermost_key(rest, path))]
    for mapping, key in keys:
        mapping.pop(key, None)
    return rest


def _copied(node: Any) -> Any:
    """Returns a copy of the containers; values may be objects that cannot be copied."""
    if isinstance(node, list):
        return [_copied(each) for each in node]
    return {key: _copied(node[key]) for key in node} if isinstance(node, dict) else node


def _innermost_key(node: Any, path: Path) -> tuple[dict[str, Any], str] | None:
    entry = None
    for part in path:
        if isinstance(node, dict) and part in node:
            entry = (node, str(part))
            node = node[part]
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        else:
            break
    return entry
