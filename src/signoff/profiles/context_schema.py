"""Turns the context schema of a profile into parameters of a run.

A schema maps each field of the context to a mapping with `type` (string, int, bool or path),
`required`, `choices`, `exists`, `default` and `description`. All of them are optional. The engine
then converts and checks the values, and reports all problems together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from signoff.core.args import Arg, Param, bind, fit
from signoff.core.code import EMPTY
from signoff.documents.files import read_text
from signoff.errors import InvalidParams, Problem
from signoff.profiles.session import ITERATION, STANDARDS_PARAM

TYPES: Mapping[str, type] = {"string": str, "int": int, "bool": bool, "path": str}
"""The types of fields, and what their values become."""
KEYS = ("type", "required", "choices", "exists", "default", "description")

SUFFIX = "_text"
"""The text of the file in the field `ddl` is in the context as `ddl_text`."""

_VALID_KEYS = f"valid: {', '.join(KEYS)}"
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


def context_params(
    schema: Mapping[str, Any], folder: Path, noun: str = "context field"
) -> tuple[dict[str, Param], list[Problem]]:
    """Returns the parameters of a schema by name, and everything that is wrong with the schema.

    `noun` is what messages call one of them. Relative paths start in `folder`. A field that is
    neither required nor has a default is None.
    """
    params: dict[str, Param] = {}
    problems: list[Problem] = []
    for name, field in schema.items():
        found = _mistakes(name, field)
        if not found:
            params[name], found = _param(name, field, folder)
        problems += [Problem(f"{noun} {name!r}", *mistake) for mistake in found]
    return params, problems


def option_values(
    schema: Mapping[str, Any], values: Mapping[str, Any], where: str
) -> tuple[dict[str, Any], list[Problem]]:
    """Returns the options of a profile, checked by its own schema, and every problem.

    `where` is the setting that has the values; they are the same in every folder.
    """
    params, problems = context_params(schema, Path(), "option")
    if problems:
        return {}, problems
    options, problems = bind(params, values)
    return options, [
        replace(each, where=f"{where}: {each.where.removeprefix('parameter ')}")
        for each in problems
    ]


def read_context_files(
    schema: Mapping[str, Mapping[str, Any]], context: Mapping[str, Any], folder: Path
) -> dict[str, str]:
    """Returns the texts of the files that a context names; raises `InvalidParams`.

    These are the fields of type `path` with `exists: true`. Relative paths start in `folder`;
    a path that leads to a folder has no text.
    """
    problems: list[Problem] = []
    texts: dict[str, str] = {}
    for name, field in schema.items():
        path = context.get(name)
        if not path or field.get("type") != "path" or not field.get("exists"):
            continue
        file = Path(folder, path)
        text = None if file.is_dir() else read_text(file, problems, name=f"{name}: {path}")
        if text is not None:
            texts[f"{name}{SUFFIX}"] = text
    if problems:
        raise InvalidParams(problems)
    return texts


def _mistakes(name: str, field: Any) -> list[tuple[str, str]]:
    """Returns what is wrong with the form of a field, each with its remedy."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return [("is not a valid name", "use letters, digits and underscores")]
    if name in (STANDARDS_PARAM, ITERATION):
        return [("is a name that the engine uses itself", "rename it")]
    if not isinstance(field, Mapping):
        return [("is not a mapping", _VALID_KEYS)]
    found = [(f"unknown key {key!r}", _VALID_KEYS) for key in field if key not in KEYS]
    kind = field.get("type", "string")
    if not isinstance(kind, str) or kind not in TYPES:
        found.append((f"unknown type {kind!r:.60}", f"valid: {', '.join(TYPES)}"))
    flags = [key for key in ("required", "exists") if not isinstance(field.get(key, False), bool)]
    found += [(f"{key} is {field[key]!r:.60}", "write true or false") for key in flags]
    if not isinstance(field.get("choices", []), list | tuple):
        found.append((f"choices is {field['choices']!r:.60}", "write a list"))
    if field.get("exists") and kind != "path":
        found.append(("exists is only for paths", "remove it, or write type: path"))
    return found


def _param(
    name: str, field: Mapping[str, Any], folder: Path
) -> tuple[Param, list[tuple[str, str]]]:
    """Returns a field as a parameter, and which of its values do not fit it."""
    required = field.get("required", False)
    plain = Param(name, TYPES[field.get("type", "string")], Arg(), optional=not required)
    choices = [fit(plain, choice) for choice in field.get("choices", ())]
    wrong = [f"choices: {why}" for _, why in choices if why]
    arg = Arg(str(field.get("description", "")), choices=tuple(each for each, _ in choices) or None)
    default = EMPTY
    if not required:
        default, why = fit(replace(plain, arg=arg), field.get("default"))
        wrong += [f"default: {why}"] if why else []
    check = partial(_problem_with, required, folder if field.get("exists") else None)
    param = replace(plain, arg=arg, default=default, check=check)
    return param, [(each, "") for each in wrong]


def _problem_with(required: bool, folder: Path | None, value: Any) -> str:
    """Returns what is wrong with a converted value; `folder` is that of a path that must exist."""
    if isinstance(value, str) and not value.strip() and (required or folder):
        return "is empty"
    try:
        missing = folder is not None and not Path(folder, value).exists()
    except OSError as error:
        return f"{value!r:.80} cannot be read: {error.strerror}"
    return f"{value!r:.80} does not exist" if missing else ""
