"""What a cassette holds: questions and answers in one readable YAML file.

Every recording is a YAML document of its own, so one more is added at the end without
touching the others, and a person can read, change or delete any of them.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from signoff.agents.answer import whole_characters
from signoff.core.digest import SHORT, digest
from signoff.core.effects import AgentRequest
from signoff.errors import ConfigError
from signoff.runtime.environment import Secrets
from signoff.testing.script_rules import fault_problems

WORKSPACE = "{workspace}"
"""Stands for the workspace's own path, which is another one on every machine."""

MOST_LINES = 60
"""Of a difference; whoever needs more looks at the file."""

_UNREADABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON takes as they are and YAML does not."""


@dataclass(frozen=True)
class Recording:
    """One question, and what came of it."""

    agent: str
    request: Mapping[str, Any]
    """As `asked` returns it."""
    place: str = ""
    """Which step asked, under which name and in which attempt: told apart where equal."""
    reply: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    files: Mapping[str, Any] = field(default_factory=dict)
    """Contents of the files that were changed; null for one that was deleted."""
    fault: Any = None
    """What a person wrote in: played once, before the answer; as in a script."""

    @property
    def key(self) -> str:
        """What a request is found by."""
        return digest(dict(self.request))

    def to_json(self) -> dict[str, Any]:
        """Returns only what is set, in the order people read it."""
        parts = {
            "agent": self.agent,
            "place": self.place,
            "request": dict(self.request),
            "reply": self.reply,
            "error": self.error,
            "files": dict(self.files),
            "fault": self.fault,
        }
        return {name: value for name, value in parts.items() if value}


def asked(request: AgentRequest) -> dict[str, Any]:
    """Returns a request as cassettes keep it: the same wherever its workspace stands."""
    data = request.to_json()
    place = data.pop("workspace", None)
    text = whole_characters(json.dumps(data, ensure_ascii=False))
    kept: dict[str, Any] = json.loads(text)
    if place is not None:
        kept = _without(kept, str(place))
        kept["workspace"] = WORKSPACE
    return kept


class Tape:
    """One cassette file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self) -> list[Recording]:
        """Returns every recording; raises `ConfigError` when the file is damaged."""
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        try:
            text = self.file.read_text("utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the cassette {self.file} cannot be read: {error}") from error
        try:
            documents = list(YAML(typ="safe", pure=True).load_all(text))
            recordings = [Recording(**each) for each in documents if each]
        except (YAMLError, TypeError) as error:
            said = " ".join(str(error).split())
            raise ConfigError(
                f"the cassette {self.file} is damaged ({said:.200}); mend it, or record it anew"
            ) from error
        problems = [problem for each in recordings for problem in fault_problems(each.fault)]
        if problems:
            raise ConfigError(f"the cassette {self.file} is wrong: {'; '.join(problems)}")
        return recordings

    def make_room(self) -> None:
        """Makes the file where it is missing; raises `OSError` when it cannot be written."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8"):
            pass

    def add(self, recording: Recording) -> None:
        """Writes one more recording at the end; a file that is committed holds no known secrets."""
        with self.file.open("a", encoding="utf-8") as out:
            out.write(Secrets.of(os.environ).hide(_document(recording)))

    def forget(self, agent: str) -> None:
        """Drops an agent's recordings, before it is recorded anew."""
        kept = [each for each in self.read() if each.agent != agent]
        if self.file.exists():
            self.file.write_text("".join(map(_document, kept)), encoding="utf-8")


def difference(request: Mapping[str, Any], recordings: Iterable[Recording]) -> str:
    """Returns how a request differs from the recorded one that is most like it."""
    wanted = _lines(request)
    closest = max(
        (each.request for each in recordings),
        # The exact ratio takes minutes for long prompts.
        key=lambda other: difflib.SequenceMatcher(None, _lines(other), wanted).quick_ratio(),
        default=None,
    )
    if closest is None:
        return "nothing is recorded for this agent"
    found = difflib.unified_diff(_lines(closest), wanted, "recorded", "asked", n=2, lineterm="")
    lines = [f"{line:.500}" for line in found]
    more = [f"... and {len(lines) - MOST_LINES} lines more"] if len(lines) > MOST_LINES else []
    return "\n".join([*lines[:MOST_LINES], *more])


def short(key: str) -> str:
    """Returns a key as people read it."""
    return key[:SHORT]


def _lines(request: Mapping[str, Any]) -> list[str]:
    """Returns a request line by line, long texts as they stand."""
    lines: list[str] = []
    for name, value in request.items():
        text = value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True)
        lines += [f"{name}:", *(f"  {line}" for line in text.splitlines())]
    return lines


def _without(value: Any, place: str) -> Any:
    match value:
        case str():
            return value.replace(place, WORKSPACE)
        case dict():
            return {key: _without(each, place) for key, each in value.items()}
        case list():
            return [_without(each, place) for each in value]
        case _:
            return value


def _document(recording: Recording) -> str:
    """Returns a recording as people read it; as JSON where YAML would not keep every character."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    data = recording.to_json()
    yaml = YAML(typ="rt")
    yaml.width = 100
    out = StringIO()
    try:
        yaml.dump(_readable(data), out)
        same = YAML(typ="safe", pure=True).load(out.getvalue()) == data
    except (YAMLError, ValueError):
        same = False
    return f"---\n{out.getvalue() if same else _as_json(data)}"


def _as_json(data: dict[str, Any]) -> str:
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return _UNREADABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def _readable(value: Any) -> Any:
    """Marks texts of several lines to be written as they stand."""
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
