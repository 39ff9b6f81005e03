"""Answers in a YAML file: the one format of scripts, written by hand, and of cassettes, recorded.

    version: 1
    rules:
      - {step: draft, text: A draft.}
      - {contains: review, times: 1, fault: 429}
      - {contains: review, json: {verdict: pass}}
    default: {text: Understood.}

Each rule is an entry. Recordings are entries too, each a YAML document of its own, so that one
more is appended without touching the others: they match one whole `request` and answer with
the recorded `reply` or `error`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from signoff.agents.answer_entry import AnswerEntry, entry_problems
from signoff.errors import ConfigError
from signoff.runtime.environment import Secrets

MOST_LINES = 60
"""Of a difference; the file has the rest."""

_UNREADABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON accepts as they are and YAML does not."""


def read_entries(file: Path) -> list[AnswerEntry]:
    """Reads a file of answers; raises one `ConfigError` with everything that is wrong with it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        documents = list(YAML(typ="safe", pure=True).load_all(file.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the answers in {file} cannot be read: {error}") from error
    except YAMLError as error:
        message = " ".join(str(error).split())
        raise ConfigError(f"{file} is damaged: {message:.300}") from error
    entries: list[Any] = []
    defaults: list[Any] = []
    problems: list[str] = []
    for document in documents:
        if isinstance(document, dict) and not document.keys() & {"rules", "default", "version"}:
            entries.append(document)
        elif document is not None:
            problems += _add_rules(document, entries, defaults)
    for number, entry in enumerate([*entries, *defaults], 1):
        where = f"rule {number}" if number <= len(entries) else "default"
        problems += [f"{where}: {problem}" for problem in entry_problems(entry)]
    if problems:
        raise ConfigError(f"the answers in {file} are wrong: {'; '.join(problems)}")
    return [AnswerEntry(each) for each in [*entries, *defaults]]


def _add_rules(document: Any, entries: list[Any], defaults: list[Any]) -> list[str]:
    if not isinstance(document, dict) or not isinstance(document.get("rules") or [], list):
        return ["there is no list of `rules`"]
    entries += document.get("rules") or []
    default = document.get("default")
    if default is not None:
        defaults.append(default if isinstance(default, dict) else {"text": str(default)})
    known = {"version", "rules", "default"}
    problems = [
        f"unknown key {key!r} (valid: version, rules, default)" for key in document.keys() - known
    ]
    if document.get("version", 1) != 1:
        problems.append(f"version {document['version']!r} is not supported (1 is)")
    return problems


def append(file: Path, entry: Mapping[str, Any]) -> None:
    """Writes an entry at the end; an empty one only checks that the file can be written.

    The file may be committed, so known secrets are not written into it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(Secrets.of(os.environ).hide(format_entry(entry)) if entry else "")


def rewrite(file: Path, entries: Iterable[AnswerEntry]) -> None:
    """Replaces what a file holds."""
    file.write_text("".join(format_entry(each.data) for each in entries), encoding="utf-8")


def describe_difference(request: Mapping[str, Any], entries: Iterable[AnswerEntry]) -> str:
    """Returns how a request differs from the recorded one that is most like it."""
    wanted = _lines(request)
    closest = max(
        (each.data["request"] for each in entries if each.recorded),
        # The exact ratio takes minutes for long prompts.
        key=lambda other: difflib.SequenceMatcher(None, _lines(other), wanted).quick_ratio(),
        default=None,
    )
    if closest is None:
        return "nothing is recorded for this agent"
    found = difflib.unified_diff(_lines(closest), wanted, "recorded", "asked", n=2, lineterm="")
    lines = [f"{line:.500}" for line in found]
    more = [f"... and {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    return "\n".join([*lines[:MOST_LINES], *more])


def format_entry(entry: Mapping[str, Any]) -> str:
    """Returns an entry as YAML; as JSON where YAML would not keep every character."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    data = {name: value for name, value in entry.items() if value}
    yaml = YAML(typ="rt")
    yaml.width = 100
    out = StringIO()
    try:
        yaml.dump(_readable(data), out)
        same = YAML(typ="safe", pure=True).load(out.getvalue()) == data
    except (YAMLError, ValueError):
        same = False
    return f"---\n{out.getvalue() if same else _as_json(data)}"


def _lines(request: Mapping[str, Any]) -> list[str]:
    """Returns a request line by line, long texts as they are."""
    lines: list[str] = []
    for name, value in request.items():
        text = value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True)
        lines += [f"{name}:", *(f"  {line}" for line in text.splitlines())]
    return lines


def _as_json(data: dict[str, Any]) -> str:
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return _UNREADABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def _readable(value: Any) -> Any:
    """Marks texts of several lines to be written as blocks."""
    from ruamel.yaml.scalarstring import LiteralScalarString

    match value:
        case str() if "\n" in value:
            return LiteralScalarString(value)
        case dict():
            return {key: _readable(each) for key, each in value.items()}
        case list() | tuple():
            return [_readable(each) for each in value]
        case _:
            return value
