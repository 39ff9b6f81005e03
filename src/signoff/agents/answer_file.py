"""Answers in a YAML file: one format for scripts, which are written, and recorded cassettes.

    version: 1
    rules:
      - {step: draft, text: A draft.}
      - {contains: review, times: 1, fault: 429}
      - {contains: review, json: {verdict: pass}}
    default: {text: Understood.}

Each rule is an entry: the requests it matches, and its answer. Recordings are entries too, each
in its own YAML document, so that one can be appended without touching the others. They match one
whole `request` and answer with the recorded `reply` or `error`.

Contents of edited files are text, or base64 for binary files; None means a deleted file.
"""

from __future__ import annotations

import asyncio
import base64
import difflib
import json
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, Literal

from signoff.agents import workspace as ws
from signoff.agents.answer import ModelAnswer, judge
from signoff.agents.base import Health, health_of, one_of
from signoff.agents.failures import find_reset_time
from signoff.core import errors
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentBadRequest, AgentError, ConfigError
from signoff.core.spend import USAGE_AMOUNTS, Usage
from signoff.documents.control_characters import replace_lone_surrogates
from signoff.runtime.effect_errors import FREE, error_from_json, error_to_json, usage_of, with_usage
from signoff.runtime.environment import Secrets
from signoff.runtime.paths import safe_path
from signoff.runtime.ports import Agent, Call, Capabilities

ANSWER_KEYS = frozenset("text json files fault reply error".split())
VALID_KEYS = ANSWER_KEYS.union(
    "contains regex agent model step key request usage delay times place".split()
)

WORKSPACE = "{workspace}"
"""Replaces the workspace's path, which differs between machines."""

FAULTS: Mapping[str, Callable[[], errors.AgentError]] = {
    "401": lambda: errors.AgentAuth("401: the key was not accepted"),
    "429": lambda: errors.AgentTransient("429: too many requests"),
    "500": lambda: errors.AgentTransient("500: internal server error"),
    "auth": lambda: errors.AgentAuth("not logged in"),
    "bad_request": lambda: errors.AgentBadRequest("400: no such model"),
    "crash": lambda: errors.AgentTransient("the agent's program crashed (exit code -11)"),
    "quota": lambda: errors.AgentQuota("the quota is used up"),
    "refused_edit": lambda: errors.AgentRefused("the agent was not allowed to edit a file"),
    "timeout": lambda: errors.AgentTimeout("no answer in time"),
}
"""Faults that raise an error; the others are simulated."""

SIMULATED = frozenset({"hang", "half_json", "empty"})


MAX_DIFF_LINES = 60
"""The rest of a difference can be found in the file."""

_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows unescaped and YAML does not."""

Contents = Mapping[str, str | Mapping[str, str] | None]
"""By path within the workspace; `{"base64": ...}` is a binary file."""


@dataclass(frozen=True)
class AnswerEntry:
    """An entry of the file."""

    data: Mapping[str, Any]

    @property
    def recorded(self) -> bool:
        """Whether it answers one recorded request, not every request that matches."""
        return "request" in self.data

    @property
    def times(self) -> int | None:
        """How often it answers; None means always."""
        if not self.recorded:
            return self.data.get("times")
        # A fault that was added to a recording comes first, then the recorded answer.
        return 1 if self.data.get("fault") is None else 2

    def matches(self, request: AgentRequest, call: Call, agent: str) -> bool:
        """Returns whether every match key fits."""
        data = self.data
        values = {
            "agent": agent,
            "model": request.model or "",
            "step": call.step,
            "key": effect_key(call),
        }
        return (
            all(str(data[name]) == value for name, value in values.items() if name in data)
            and str(data.get("contains", "")) in request.prompt
            and ("regex" not in data or bool(re.search(str(data["regex"]), request.prompt)))
            and (not self.recorded or data["request"] == portable_request(request))
        )

    async def answer(self, request: AgentRequest, *, used: int = 0) -> Reply:
        """Returns the answer or simulates the fault; `used` is how often it has answered before."""
        if delay := self.data.get("delay"):
            await asyncio.sleep(float(delay))
        fault = None if self.recorded and used else self.data.get("fault")
        name, until = _parse_fault(fault)
        if name in FAULTS:
            error = FAULTS[name]()
            if isinstance(error, errors.AgentQuota) and until is not None:
                error.until = _parse_time(until)
            raise with_usage(error, self._usage()) if "usage" in self.data else error
        if name == "hang":
            await asyncio.Event().wait()
        if not name and self.data.get("error"):
            raise _recorded_error(self.data["error"])
        files = apply_edits(self.data.get("files") or {}, request)
        if not name and self.recorded:
            return Reply.from_json(dict(self.data.get("reply") or {"text": ""}))
        schema = request.schema
        if schema is None and "json" in self.data and fault is None:
            schema = {}
        answer = ModelAnswer(self._text(name), usage=self._usage())
        return replace(judge(answer, schema), files=files)

    def _text(self, fault: str) -> str:
        if "json" in self.data:
            text = json.dumps(self.data["json"], ensure_ascii=False)
        else:
            text = str(self.data.get("text") or (self.data.get("reply") or {}).get("text") or "")
        match fault:
            case "empty":
                return ""
            case "half_json":
                text = text or '{"verdict": "pass"}'
                return text[: len(text) // 2]
            case _:
                return text or ("Done." if self.data.get("files") else "")

    def _usage(self) -> Usage | None:
        usage = self.data.get("usage", FREE)
        return Usage(**usage) if isinstance(usage, Mapping) else usage


def take_answer(
    entries: Sequence[AnswerEntry],
    request: AgentRequest,
    call: Call,
    agent: str,
    used: Counter[int],
) -> Callable[[AgentRequest], Awaitable[Reply]] | None:
    """Returns what answers a request; `used` counts the uses of each entry, this one included.

    This is the entry recorded for the same call, or the first that matches.
    """
    # Counted by position and not by content: a file may have the same entry twice, for two calls.
    matching = [
        number
        for number, entry in enumerate(entries)
        if (entry.times is None or used[number] < entry.times)
        and entry.matches(request, call, agent)
    ]
    if not matching:
        return None
    # Equal requests of a fan-out arrive in another order on replay, so the call itself decides.
    same_call = (n for n in matching if entries[n].data.get("place") == call_location(call))
    number = next(same_call, matching[0])
    used[number] += 1
    return partial(entries[number].answer, used=used[number] - 1)


def portable_request(request: AgentRequest) -> dict[str, Any]:
    """Returns a request as it is recorded, independent of the path of its workspace."""
    data = request.to_json()
    data.pop("shared", None)  # a hint for prompt caches, and no part of the question
    folder = data.pop("workspace", None)
    text = replace_lone_surrogates(json.dumps(data, ensure_ascii=False))
    portable: dict[str, Any] = json.loads(text)
    if folder is not None:
        portable = _replace_folder(portable, str(folder))
        portable["workspace"] = WORKSPACE
    return portable


def effect_key(call: Call) -> str:
    """Returns the key of a step's request: the last part of the effect's id."""
    return str(call.effect).rpartition("/")[2].partition("#")[0]


def call_location(call: Call) -> str:
    """Returns what distinguishes equal requests of a run, stored as `place`."""
    return f"{call.step}/{call.effect}@{call.attempt}"


def read_entries(file: Path) -> list[AnswerEntry]:
    """Reads a file of answers; raises one `ConfigError` with all its problems."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        documents = list(YAML(typ="safe", pure=True).load_all(file.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise errors.ConfigError(f"the answers in {file} cannot be read: {error}") from error
    except YAMLError as error:
        message = " ".join(str(error).split())
        raise errors.ConfigError(f"{file} is not valid YAML: {message:.300}") from error
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
        raise errors.ConfigError(f"the answers in {file} are invalid: {'; '.join(problems)}")
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


def entry_problems(raw: Any) -> list[str]:
    """Returns all problems of an entry."""
    if not isinstance(raw, dict):
        return ["is not a mapping"]
    problems = [
        f"unknown key {key!r} (valid: {', '.join(sorted(VALID_KEYS))})"
        for key in sorted(map(str, raw.keys() - VALID_KEYS))
    ]
    if "request" not in raw and not raw.keys() & ANSWER_KEYS:
        problems.append("has no answer (add text, json, files or fault)")
    if "text" in raw and "json" in raw:
        problems.append("has both text and json")
    times = raw.get("times", 1)
    if not isinstance(times, int) or times < 1:
        problems.append(f"times must be a whole number of at least 1, not {times!r}")
    try:
        re.compile(str(raw.get("regex", "")))
    except re.error as error:
        problems.append(f"regex {raw['regex']!r} is invalid: {error}")
    try:
        Usage(**(raw.get("usage") or {}))
    except TypeError:
        problems.append(
            f"usage must have {', '.join(USAGE_AMOUNTS)} and model only, not {raw['usage']!r}"
        )
    return [*problems, *_fault_problems(raw.get("fault"))]


def _parse_fault(fault: Any) -> tuple[str, Any]:
    """Returns a fault's name and, for a quota, when it ends."""
    if isinstance(fault, dict) and len(fault) == 1:
        ((name, until),) = fault.items()
        return str(name), until
    return ("" if fault is None else str(fault)), None


def _fault_problems(fault: Any) -> list[str]:
    if fault is None:
        return []
    name, until = _parse_fault(fault)
    if name not in FAULTS and name not in SIMULATED:
        return [f"unknown fault {name!r} (faults: {', '.join(sorted({*FAULTS, *SIMULATED}))})"]
    try:
        if until is not None:
            _parse_time(until)
    except ValueError:
        return [f"quota until {until!r} is not a time such as 2030-01-01T00:00:00Z or `in 5 min`"]
    return []


def _parse_time(until: Any) -> datetime:
    """Returns the time of an entry: a date, or a duration such as `in 5 min`."""
    if isinstance(until, str):
        after = find_reset_time(f"resets {until}", datetime.now(UTC))
        until = after or datetime.fromisoformat(until)
    if not isinstance(until, datetime):
        raise ValueError(until)  # noqa: TRY004  # a value of a file, not of code
    return until if until.tzinfo else until.replace(tzinfo=UTC)


def _recorded_error(recorded: Mapping[str, Any]) -> errors.SignoffError:
    error = error_from_json(dict(recorded))
    if "usage" in recorded and isinstance(error, errors.AgentError):
        return with_usage(error, Usage(**recorded["usage"]))
    return error


def _replace_folder(value: Any, folder: str) -> Any:
    match value:
        case str():
            return value.replace(folder, WORKSPACE)
        case dict():
            return {key: _replace_folder(each, folder) for key, each in value.items()}
        case list():
            return [_replace_folder(each, folder) for each in value]
        case _:
            return value


def append(file: Path, entry: Mapping[str, Any]) -> None:
    """Appends an entry; an empty one only checks that the file can be written.

    The file may be committed to a repository, so known secrets are redacted.
    """
    # Appended and never rewritten: a crash while it is recorded must not cost the earlier answers.
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


def apply_edits(files: Contents, request: AgentRequest) -> dict[str, str]:
    """Edits files as an agent would and returns the diffs; refuses paths outside the workspace."""
    if not files:
        return {}
    if not request.edit or request.workspace is None:
        raise errors.AgentRefused("the answer edits files, and the request does not allow it")
    folder = Path(request.workspace)
    # All paths are checked before the first file is written, so a refused edit leaves nothing
    # behind.
    try:
        paths = {name: safe_path(folder, name) for name in files}
    except errors.UnsafePath as error:
        raise errors.AgentRefused(f"the edit leaves the workspace: {error}") from error
    before = ws.take_snapshot(folder)
    for name, content in files.items():
        _write(paths[name], content)
    return ws.changes_since(before).inside


def watch_edits(request: AgentRequest) -> Callable[[], dict[str, str | dict[str, str] | None]]:
    """Takes a snapshot of the workspace; the function it returns lists the changes since."""
    if not request.edit or request.workspace is None:
        return dict
    folder = Path(request.workspace)
    before = ws.take_snapshot(folder)
    return lambda: {name: _read(folder / name) for name in ws.changes_since(before).inside}


def _write(path: Path, content: str | Mapping[str, str] | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
        return
    data = content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _read(path: Path) -> str | dict[str, str] | None:
    if not path.is_file():
        return None
    data = path.read_bytes()
    text = ws.text_of(data)
    return {"base64": base64.b64encode(data).decode("ascii")} if text is None else text


Mode = Literal["record", "replay", "auto"]
MODES = ("record", "replay", "auto")


class CassetteAgent:
    """Records an agent's answers and replays them.

    `record` always asks the agent and replaces its recordings, `replay` never asks it,
    `auto` asks for answers that are not recorded yet.
    """

    capabilities = Capabilities(
        edits_files=True, is_model=False, needs_agents=True, path_options=("file",)
    )

    def __init__(
        self,
        *,
        file: str | Path,
        agent: str | Agent,
        mode: Mode = "auto",
        name: str = "",
        agents: Mapping[str, Any] | None = None,
    ) -> None:
        """Takes the agent itself, or the name of one of `agents`."""
        one_of("mode", mode, MODES)
        if isinstance(agent, str):
            if agents is None or agent not in agents:
                raise ConfigError(f"unknown agent {agent!r} (the one to record)")
            name = agent
            self._agent: Agent = agents[agent].agent
        else:
            self._agent = agent
        self._name = name or "agent"
        self._mode = mode
        self._file = Path(file)
        self._entries: list[AnswerEntry] | None = None
        self._used: Counter[int] = Counter()

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers from the file, or asks the agent and records the outcome."""
        try:
            entries = self._read()
        except ConfigError as error:
            raise AgentBadRequest(str(error)) from error
        if self._mode != "record":
            answer = take_answer(entries, request, call, self._name, self._used)
            if answer is not None:
                reply = await answer(request)
                call.emit(reply.text)
                return reply
        if self._mode == "replay":
            raise AgentBadRequest(self._not_recorded(entries, portable_request(request)))
        return await self._record(request, call)

    async def health(self) -> Health:
        """Reports the recordings, and the agent's health unless it is only replayed."""
        try:
            number = len(self._split_entries()[0])
        except ConfigError as error:
            return Health(False, str(error), "fix the file, or delete it and record again")
        detail = f"{self._file}, {number} recordings"
        if self._mode == "replay":
            return Health(bool(number), detail, "record it first: mode: record")
        return replace(await health_of(self._agent), detail=detail)

    def _read(self) -> list[AnswerEntry]:
        if self._entries is None:
            own, others = self._split_entries()
            if self._mode == "record" and self._file.exists():
                rewrite(self._file, others)
                own = []
            self._entries = own
        return self._entries

    def _split_entries(self) -> tuple[list[AnswerEntry], list[AnswerEntry]]:
        """Returns the entries of this agent, and those of others in the same file."""
        own: list[AnswerEntry] = []
        others: list[AnswerEntry] = []
        # Agents may share a file, so that a test has one cassette. Each touches its own entries
        # only.
        for entry in read_entries(self._file) if self._file.exists() else ():
            (own if entry.data.get("agent", self._name) == self._name else others).append(entry)
        return own, others

    async def _record(self, request: AgentRequest, call: Call) -> Reply:
        try:
            # Checked before the agent is asked: its answer would be paid for and lost.
            append(self._file, {})
        except OSError as error:
            raise AgentBadRequest(f"{self._file} cannot be written: {error}") from error
        changed = await asyncio.to_thread(watch_edits, request)
        plain = portable_request(request)
        entry = {"agent": self._name, "place": call_location(call), "request": plain}
        try:
            reply = await self._agent.ask(request, call)
        except AgentError as error:
            usage = usage_of(error)
            fault = {**error_to_json(error), **({"usage": usage.to_json()} if usage else {})}
            append(self._file, {**entry, "error": fault})
            raise
        files = await asyncio.to_thread(changed)
        append(self._file, {**entry, "reply": reply.to_json(), "files": files})
        return reply

    def _not_recorded(self, entries: list[AnswerEntry], plain: dict[str, Any]) -> str:
        times = [each.data.get("request") for each in entries].count(plain)
        if times:
            return (
                f"{self._file} holds {times} answers of {self._name!r} to this request, and all "
                f"are used: {plain['prompt']!r:.200}"
            )
        return (
            f"{self._file} holds no answer of {self._name!r} to this request; record it "
            f"(mode: record or auto), or see what changed:\n{describe_difference(plain, entries)}"
        )
