"""Answers in a YAML file: one format for scripts, which are written, and recorded cassettes.

    version: 1
    rules:
      - {step: draft, text: A draft.}
      - {contains: review, times: 1, fault: 429}
      - {contains: review, json: {verdict: pass}}
    default: {text: Understood.}

Each rule is an entry. Recordings are entries too, each in its own YAML document, so that one
can be appended without touching the others. They match one whole `request` and answer with
the recorded `reply` or `error`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import Any

from signoff.agents.answer_entry import AnswerEntry, entry_problems
from signoff.errors import ConfigError
from signoff.runtime.environment import Secrets

MAX_DIFF_LINES = 60
"""The rest of a difference can be found in the file."""

_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows unescaped and YAML does not."""


def read_entries(file: Path) -> list[AnswerEntry]:
    """Reads a file of answers; raises one `ConfigError` with all its problems."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        documents = list(YAML(typ="safe", pure=True).load_all(file.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the answers in {file} cannot be read: {error}") from error
    except YAMLError as error:
        message = " ".join(str(error).split())
        raise ConfigError(f"{file} is not valid YAML: {message:.300}") from error
    entries: list[Any] = []
    defaults: list[Any] = []
    problems: list[str] = []
    for document in documents:
        if isinstance(document, dict) and not document.keys() & {"rules", "default", "version"}:
            entries.append(document)
        elif document is not None:
            problems += _add_rules(document, entries, defaults)
    for number, entry in enumerate([*entries, *defaults], 1):
        location = f"rule {number}" if number <= len(entries) else "default"
        problems += [f"{location}: {problem}" for problem in entry_problems(entry)]
    if problems:
        raise ConfigError(f"the answers in {file} are invalid: {'; '.join(problems)}")
    return [AnswerEntry(entry) for entry in [*entries, *defaults]]


def _add_rules(document: Any, entries: list[Any], defaults: list[Any]) -> list[str]:
    if not isinstance(document, dict) or not isinstance(document.get("rules") or [], list):
        return ["there is no list of `rules`"]
    entries += document.get("rules") or []
    default = document.get("default")
    if default is not None:
        defaults.append(default if isinstance(default, dict) else {"text": str(default)})
    valid = {"version", "rules", "default"}
    problems = [
        f"unknown key {key!r} (valid: version, rules, default)" for key in document.keys() - valid
    ]
    if document.get("version", 1) != 1:
        problems.append(f"unsupported version {document['version']!r} (supported: 1)")
    return problems


def append(file: Path, entry: Mapping[str, Any]) -> None:
    """Appends an entry; an empty one only checks that the file can be written.

    The file may be committed to a repository, so known secrets are redacted.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(Secrets.of(os.environ).hide(format_entry(entry)) if entry else "")


def rewrite(file: Path, entries: Iterable[AnswerEntry]) -> None:
    """Replaces the entries of a file."""
    file.write_text("".join(format_entry(entry.data) for entry in entries), encoding="utf-8")


def describe_difference(request: Mapping[str, Any], entries: Iterable[AnswerEntry]) -> str:
    """Returns how a request differs from the most similar recorded one."""
    lines = _lines(request)
    closest = max(
        (entry.data["request"] for entry in entries if entry.recorded),
        # The exact ratio takes minutes for long prompts.
        key=lambda other: difflib.SequenceMatcher(None, _lines(other), lines).quick_ratio(),
        default=None,
    )
    if closest is None:
        return "nothing is recorded for this agent"
    changes = difflib.unified_diff(_lines(closest), lines, "recorded", "request", n=2, lineterm="")
    diff = [f"{line:.500}" for line in changes]
    if len(diff) > MAX_DIFF_LINES:
        diff[MAX_DIFF_LINES:] = [f"... and {len(diff) - MAX_DIFF_LINES} more lines"]
    return "\n".join(diff)


def format_entry(entry: Mapping[str, Any]) -> str:
    """Returns an entry as YAML, or as JSON where YAML would change a character."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.scalarstring import walk_tree

    data = {name: value for name, value in entry.items() if value}
    yaml = YAML(typ="rt")
    yaml.width = 100
    out = StringIO()
    readable = deepcopy(data)
    walk_tree(readable)  # makes texts of several lines blocks
    try:
        yaml.dump(readable, out)
        # YAML changes some texts, such as those with a carriage return.
        same = YAML(typ="safe", pure=True).load(out.getvalue()) == data
    except (YAMLError, ValueError):
        same = False
    return f"---\n{out.getvalue() if same else _as_json(data)}"


def _lines(request: Mapping[str, Any]) -> list[str]:
    """Returns a request as lines, with long texts unescaped."""
    lines: list[str] = []
    for name, value in request.items():
        text = value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True)
        lines += [f"{name}:", *(f"  {line}" for line in text.splitlines())]
    return lines


def _as_json(data: dict[str, Any]) -> str:
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"
