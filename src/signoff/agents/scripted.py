"""Agents with scripted and recorded answers, for tests and runs without a model.

In code, an answer is a text, a dict (which becomes a reply with that value, and its JSON as the
text), a whole `Reply`, an exception to raise, a `DelayedAnswer` one of these, or a function of
the request that returns one. Texts and dicts are checked like a model's answer: one that is
empty or does not match the schema raises `AgentBadOutput`. A `Reply` is returned unchecked.
A prompt without an answer is refused with an error that shows it.

Files of answers have one format for scripts, which are written, and cassettes, which are recorded:

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
import inspect
import json
import os
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher, unified_diff
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from signoff.agents import workspace as ws
from signoff.agents.answer import ModelAnswer, judge
from signoff.agents.base import Health, health_of, one_of
from signoff.agents.failures import find_reset_time
from signoff.core import errors
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentBadRequest, AgentError, ConfigError
from signoff.core.one_line import start_of
from signoff.core.spend import USAGE_AMOUNTS, Usage
from signoff.documents.control_characters import replace_lone_surrogates
from signoff.runtime.effect_errors import FREE, error_from_json, error_to_json, usage_of, with_usage
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import Agent, Call, Capabilities, Clock


@dataclass(frozen=True)
class DelayedAnswer:
    """An answer that arrives after a delay."""

    seconds: float
    answer: Any


Answer: TypeAlias = (
    str | Reply | Mapping[str, Any] | BaseException | type[BaseException] | DelayedAnswer
)
ScriptedAnswer: TypeAlias = Answer | Callable[[AgentRequest], Answer | Awaitable[Answer]]
Match: TypeAlias = str | re.Pattern[str] | Callable[[AgentRequest], bool]


class ScriptedAgent:
    """Answers from a list, in order, or by rules that look at the prompt."""

    capabilities = Capabilities(edits_files=True, is_model=False)

    def __init__(
        self,
        answers: Iterable[ScriptedAnswer] = (),
        *,
        usage: Usage | None = FREE,
        delay: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        """Takes answers that are used once each; `usage=None` makes their cost unknown."""
        self.requests: list[AgentRequest] = []
        """All requests, in order."""
        self.calls: list[Call] = []
        """The call of each request."""
        self.most_at_once = 0
        """The largest number of calls that ran at the same time."""
        self._answers = deque(answers)
        self._rules: list[tuple[Match, deque[ScriptedAnswer]]] = []
        self._usage = usage
        self._delay = delay
        self._clock = clock
        self.under_way = 0
        """How many calls are running now."""

    def on(self, match: Match, *answers: ScriptedAnswer) -> ScriptedAgent:
        """Answers matching prompts with each answer in turn; the last one repeats.

        A text matches prompts that contain it, a pattern prompts it is found in, a function
        requests it returns true for. The first matching rule wins, before the list.
        """
        if not answers:
            raise ValueError("a rule needs at least one answer")
        self._rules.append((match, deque(answers)))
        return self

    @property
    def prompts(self) -> list[str]:
        """The prompts of all requests."""
        return [request.prompt for request in self.requests]

    @property
    def remaining(self) -> int:
        """How many answers of the list are unused."""
        return len(self._answers)

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Returns the next answer, or refuses."""
        self.requests.append(request)
        self.calls.append(call)
        # Chosen before the first pause: concurrent calls get their answers in the order of the
        # calls.
        answer = self._next(request)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            await self._pause(self._delay)
            return await self._reply(answer, request)
        finally:
            self.under_way -= 1

    def _next(self, request: AgentRequest) -> ScriptedAnswer:
        for match, answers in self._rules:
            if _matches(match, request):
                # The last answer repeats, so a script need not know how many rounds a loop takes.
                return answers.popleft() if len(answers) > 1 else answers[0]
        if self._answers:
            return self._answers.popleft()
        raise AgentBadRequest(
            f"the scripted agent has no answer to its call {len(self.requests)}: "
            f"{start_of(request.prompt)!r} (add one to the list, or with .on(...))"
        )

    async def _reply(self, answer: Any, request: AgentRequest) -> Reply:  # noqa: C901  # a flat list
        while True:
            match answer:
                case DelayedAnswer():
                    await self._pause(answer.seconds)
                    answer = answer.answer
                case BaseException():
                    raise answer
                case type():
                    answer = answer()
                case Reply():
                    return answer
                case str():
                    return judge(ModelAnswer(answer, usage=self._usage), request.schema)
                case Mapping():
                    text = json.dumps(dict(answer))
                    return judge(ModelAnswer(text, usage=self._usage), request.schema or {})
                case _:
                    answer = answer(request)
                    if inspect.isawaitable(answer):
                        answer = await answer

    async def _pause(self, seconds: float) -> None:
        if seconds:
            await (self._clock.sleep(seconds) if self._clock else asyncio.sleep(seconds))


def _matches(match: Match, request: AgentRequest) -> bool:
    if isinstance(match, str):
        return match in request.prompt
    if isinstance(match, re.Pattern):
        return match.search(request.prompt) is not None
    return match(request)


ANSWER_KEYS = frozenset("text json files fault reply error".split())
SCRIPT_KEYS = ("version", "rules", "default")
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
        return 1 if self.recorded else self.data.get("times")

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

    async def answer(self, request: AgentRequest) -> Reply:
        """Returns the answer or simulates the fault."""
        if delay := self.data.get("delay"):
            await asyncio.sleep(float(delay))
        name, until = _parse_fault(self.data.get("fault"))
        if name in FAULTS:
            error = FAULTS[name]()
            if isinstance(error, errors.AgentQuota):
                error.until = until
            raise with_usage(error, self._usage()) if "usage" in self.data else error
        if name == "hang":
            await asyncio.Event().wait()
        if not name and self.data.get("error"):
            raise _recorded_error(self.data["error"])
        files = ws.apply_edits(self.data.get("files") or {}, request)
        if not name and self.recorded:
            return Reply.from_json(dict(self.data.get("reply") or {"text": ""}))
        schema = request.schema
        if schema is None and "json" in self.data and not name:
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
    return entries[number].answer


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
    """Reads a file of answers; raises one `AgentBadRequest` with all its problems."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        documents = list(YAML(typ="safe", pure=True).load_all(file.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise AgentBadRequest(f"the answers in {file} cannot be read: {error}") from error
    except YAMLError as error:
        message = " ".join(str(error).split())
        raise AgentBadRequest(f"{file} is not valid YAML: {message:.300}") from error
    entries: list[Any] = []
    defaults: list[Any] = []
    problems: list[str] = []
    for document in documents:
        if isinstance(document, dict) and document.keys().isdisjoint(SCRIPT_KEYS):
            entries.append(document)
        elif document is not None:
            problems += _add_rules(document, entries, defaults)
    for number, entry in enumerate([*entries, *defaults], 1):
        location = f"rule {number}" if number <= len(entries) else "default"
        problems += [f"{location}: {problem}" for problem in entry_problems(entry)]
    if problems:
        raise AgentBadRequest(f"the answers in {file} are invalid: {'; '.join(problems)}")
    return [AnswerEntry(entry) for entry in [*entries, *defaults]]


def _add_rules(document: Any, entries: list[Any], defaults: list[Any]) -> list[str]:
    if not isinstance(document, dict) or not isinstance(document.get("rules") or [], list):
        return ["there is no list of `rules`"]
    entries += document.get("rules") or []
    default = document.get("default")
    if default is not None:
        defaults.append(default if isinstance(default, dict) else {"text": str(default)})
    problems = _unknown_keys(document, SCRIPT_KEYS)
    if document.get("version", 1) != 1:
        problems.append(f"unsupported version {document['version']!r} (supported: 1)")
    return problems


def entry_problems(raw: Any) -> list[str]:
    """Returns all problems of an entry."""
    if not isinstance(raw, dict):
        return ["is not a mapping"]
    problems = _unknown_keys(raw, VALID_KEYS)
    if "request" not in raw and not raw.keys() & ANSWER_KEYS:
        problems.append("has no answer (add text, json, files or fault)")
    if "text" in raw and "json" in raw:
        problems.append("has both text and json")
    times = raw.get("times", 1)
    if not isinstance(times, int) or times < 1:
        problems.append(f"times must be a whole number of at least 1, not {times!r}")
    try:
        re.compile(str(raw.get("regex", "")))
        Usage(**(raw.get("usage") or {}))
        _parse_fault(raw.get("fault"))
    except re.error as error:
        problems.append(f"regex {raw['regex']!r} is invalid: {error}")
    except TypeError:
        names = f"{', '.join(USAGE_AMOUNTS)} and model"
        problems.append(f"usage must have {names} only, not {raw['usage']!r}")
    except ValueError as error:
        problems.append(f"fault: {error}")
    return problems


def _unknown_keys(raw: Mapping[Any, Any], valid: Collection[str]) -> list[str]:
    listed = ", ".join(sorted(valid))
    return [f"unknown key {key!r} (valid: {listed})" for key in raw if key not in valid]


def _parse_fault(fault: Any) -> tuple[str, datetime | None]:
    """Returns a fault's name and, for a quota, when it ends; raises `ValueError`."""
    if fault is None:
        return "", None
    # A quota may have its end: a date, or a duration such as `in 5 min`.
    ends = fault if isinstance(fault, dict) and len(fault) == 1 else {fault: None}
    ((name, until),) = ends.items()
    if str(name) not in FAULTS.keys() | SIMULATED:
        listed = ", ".join(sorted(FAULTS.keys() | SIMULATED))
        raise ValueError(f"unknown fault {str(name)!r} (faults: {listed})")
    if isinstance(until, str):
        after = find_reset_time(f"resets {until}", datetime.now(UTC))
        until = after or datetime.fromisoformat(until)
    if not isinstance(until, datetime | None):
        raise ValueError(f"{until!r} is not a time")  # noqa: TRY004  # a value of a file
    return str(name), until if until is None or until.tzinfo else until.replace(tzinfo=UTC)


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


def describe_difference(request: Mapping[str, Any], entries: Iterable[AnswerEntry]) -> str:
    """Returns how a request differs from the most similar recorded one."""
    lines = _lines(request)
    recorded = [_lines(entry.data["request"]) for entry in entries if entry.recorded]
    if not recorded:
        return "nothing is recorded for this agent"
    # The exact ratio takes minutes for long prompts.
    closest = max(recorded, key=lambda other: SequenceMatcher(None, other, lines).quick_ratio())
    changes = unified_diff(closest, lines, "recorded", "request", n=2, lineterm="")
    return "\n".join(f"{line:.500}" for line in islice(changes, MAX_DIFF_LINES))


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


class FileScript(ScriptedAgent):
    """Answers by the rules of a file, which is read on the first call.

    The first matching rule that is not used up answers. Uses are counted per run and include
    the calls of earlier processes, so a resumed run continues with the right rule.
    """

    capabilities = Capabilities(edits_files=True, is_model=False, path_options=("file",))

    def __init__(self, *, file: str | Path) -> None:
        super().__init__()
        self._file = Path(file)
        self._entries: list[AnswerEntry] | None = None
        self._used: dict[str, Counter[int]] = {}

    async def health(self) -> Health:
        """Checks that the file is valid."""
        try:
            rules = read_entries(self._file)
        except AgentBadRequest as error:
            return Health(False, str(error), "fix the file")
        return Health(True, f"{self._file}, {len(rules)} rules")

    def _next(self, request: AgentRequest) -> ScriptedAnswer:
        call = self.calls[-1]
        entries, used = self._rules_for(call)
        answer = take_answer(entries, request, call, call.agent, used)
        if answer is None:
            raise AgentBadRequest(
                f"no rule of {self._file.name} matches the request of step {call.step!r} to agent "
                f"{call.agent!r} with key {effect_key(call)!r}: {start_of(request.prompt)!r}"
            )
        return answer

    def _rules_for(self, call: Call) -> tuple[Sequence[AnswerEntry], Counter[int]]:
        """Returns the rules, and how often each was used in the call's run."""
        if self._entries is None:
            self._entries = read_entries(self._file)
        run = call.run_key or call.run
        if run not in self._used:
            # A resumed run has answers that another process gave; replaying the choice of rules
            # for those calls restores the counts.
            used = self._used[run] = Counter()
            for request, earlier, answered_by in call.earlier():
                if not answered_by:
                    take_answer(self._entries, request, earlier, earlier.agent, used)
        return self._entries, self._used[run]


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
        entries = self._read()
        if self._mode != "record":
            answer = take_answer(entries, request, call, self._name, self._used)
            if answer is not None:
                reply = await answer(request)
                call.emit(reply.text)
                return reply
        if self._mode == "replay":
            changed = describe_difference(portable_request(request), entries)
            raise AgentBadRequest(
                f"{self._file} has no answer of {self._name!r} to this request that is not used; "
                f"record it (mode: record or auto), or see what changed:\n{changed or 'nothing'}"
            )
        return await self._record(request, call)

    async def health(self) -> Health:
        """Reports the recordings, and the agent's health unless it is only replayed."""
        try:
            number = len(self._split_entries()[0])
        except AgentBadRequest as error:
            return Health(False, str(error), "fix the file, or delete it and record again")
        detail = f"{self._file}, {number} recordings"
        if self._mode == "replay":
            return Health(bool(number), detail, "record it first: mode: record")
        return replace(await health_of(self._agent), detail=detail)

    def _read(self) -> list[AnswerEntry]:
        if self._entries is None:
            self._entries, others = self._split_entries()
            if self._mode == "record" and self._file.exists():
                self._entries = []
                texts = [format_entry(entry.data) for entry in others]
                self._file.write_text("".join(texts), encoding="utf-8")
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
        folder = Path(request.workspace) if request.edit and request.workspace else None
        before = await asyncio.to_thread(ws.take_snapshot, folder) if folder else None
        plain = portable_request(request)
        entry = {"agent": self._name, "place": call_location(call), "request": plain}
        try:
            reply = await self._agent.ask(request, call)
        except AgentError as error:
            usage = usage_of(error)
            fault = {**error_to_json(error), **({"usage": usage.to_json()} if usage else {})}
            append(self._file, {**entry, "error": fault})
            raise
        files = await asyncio.to_thread(ws.edited_files, before) if before else {}
        append(self._file, {**entry, "reply": reply.to_json(), "files": files})
        return reply
