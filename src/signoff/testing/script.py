"""Scripted answers from a file, for runs without any model.

    version: 1
    rules:
      - {step: draft, text: A draft.}
      - {contains: review, times: 1, fault: 429}
      - {contains: review, json: {verdict: pass}}
    default: {text: Understood.}

The first rule that fits and is not used up answers. A rule fits when everything it names
does: contains, regex, agent, model, step, key. It answers with text, json, files to
change, or a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signoff.agents.base import Health
from signoff.core.effects import AgentRequest
from signoff.core.spend import Usage
from signoff.errors import AgentBadRequest, ConfigError
from signoff.testing.script_rules import ScriptRule, fault_problems, key_of
from signoff.testing.scripted import ScriptedAgent, ScriptedAnswer

MATCHES = frozenset("contains regex agent model step key".split())
SAYS = frozenset("text json files fault usage delay times".split())


class FileScript(ScriptedAgent):
    """Answers by the rules of a file, read when it is first asked."""

    def __init__(self, *, file: str | Path) -> None:
        super().__init__()
        self._file = Path(file)
        self._script: list[ScriptRule] | None = None
        self._used: dict[int, int] = {}

    async def health(self) -> Health:
        """Reads the file."""
        try:
            rules = read_script(self._file)
        except ConfigError as error:
            return Health(False, str(error), "mend the file")
        return Health(True, f"{self._file}, {len(rules)} rules")

    def _next(self, request: AgentRequest) -> ScriptedAnswer:
        if self._script is None:
            try:
                self._script = read_script(self._file)
            except ConfigError as error:
                raise AgentBadRequest(str(error)) from error
        call = self.calls[-1]
        for number, rule in enumerate(self._script):
            used = self._used.get(number, 0)
            if (rule.times is None or used < rule.times) and rule.fits(request, call):
                self._used[number] = used + 1
                return rule.answer()
        self.refused.append(request.prompt)
        raise AgentBadRequest(
            f"no rule of {self._file.name} fits what step {call.step!r} asks {call.agent!r} "
            f"under the key {key_of(call)!r}: {request.prompt!r:.200}"
        )


def read_script(file: Path) -> list[ScriptRule]:
    """Reads a script; raises one `ConfigError` with everything that is wrong with it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe", pure=True).load(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the script {file} cannot be read: {error}") from error
    except YAMLError as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"the script {file} is not YAML: {said:.300}") from error
    if not isinstance(document, dict) or not isinstance(document.get("rules", []), list):
        raise ConfigError(f"the script {file} has no list of `rules`")
    problems = [
        f"unknown key {key!r} (valid: version, rules, default)"
        for key in document.keys() - {"version", "rules", "default"}
    ]
    if document.get("version", 1) != 1:
        problems.append(f"version {document['version']!r} is not known (1 is)")
    listed = document.get("rules") or []
    for number, rule in enumerate(listed, 1):
        problems += [f"rule {number}: {problem}" for problem in _problems(rule)]
    default = document.get("default")
    if default is not None:
        default = default if isinstance(default, dict) else {"text": str(default)}
        problems += [f"default: {problem}" for problem in _problems(default)]
    if problems:
        raise ConfigError(f"the script {file} is wrong: {'; '.join(problems)}")
    return [_rule(each) for each in [*listed, *([default] if default else [])]]


def _rule(raw: Mapping[str, Any]) -> ScriptRule:
    match = {name: str(raw[name]) for name in raw.keys() & MATCHES}
    says = {name: raw[name] for name in raw.keys() & SAYS - {"times"}}
    return ScriptRule(match, says, raw.get("times"))


def _problems(raw: Any) -> list[str]:
    if not isinstance(raw, dict):
        return ["is no mapping"]
    found = [
        f"unknown key {key!r} (valid: {', '.join(sorted(MATCHES | SAYS))})"
        for key in sorted(map(str, raw.keys() - MATCHES - SAYS))
    ]
    if not raw.keys() & {"text", "json", "files", "fault"}:
        found.append("says nothing (text, json, files or fault)")
    if "text" in raw and "json" in raw:
        found.append("says both text and json")
    times = raw.get("times", 1)
    if not isinstance(times, int) or times < 1:
        found.append(f"times is {times!r}; it is a whole number from 1")
    if "regex" in raw:
        found += _regex_problems(str(raw["regex"]))
    return [*found, *fault_problems(raw.get("fault")), *_usage_problems(raw.get("usage"))]


def _regex_problems(pattern: str) -> list[str]:
    try:
        re.compile(pattern)
    except re.error as error:
        return [f"regex {pattern!r} is wrong: {error}"]
    return []


def _usage_problems(usage: Any) -> list[str]:
    if usage is None:
        return []
    try:
        Usage(**usage)
    except TypeError:
        return [f"usage is {usage!r}; it holds tokens_in, tokens_out, usd and model"]
    return []
