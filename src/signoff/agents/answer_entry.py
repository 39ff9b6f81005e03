"""One entry of a file of answers: the requests it is for, and what it answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from typing import Any

from signoff.agents import file_edits
from signoff.agents.answer import ModelAnswer as Whole
from signoff.agents.answer import judge, replace_lone_surrogates
from signoff.core.digest import digest
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.documents.bounded import OutOfBounds, search
from signoff.errors import (
    AgentAuth,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTimeout,
    AgentTransient,
    ConfigError,
    SignoffError,
)
from signoff.runtime.effect_errors import error_from_json, with_usage
from signoff.runtime.ports import Call

MATCHES = frozenset("contains regex agent model step key request".split())
ANSWERS = frozenset("text json files fault reply error".split())
DETAILS = frozenset("usage delay times place".split())

WORKSPACE = "{workspace}"
"""Stands for the workspace's path, which differs between machines."""

NOTHING = Usage(tokens_in=0, tokens_out=0, usd=0.0)
"""What an answer costs unless the file says otherwise."""

FAULTS: Mapping[str, Callable[[], AgentError]] = {
    "401": lambda: AgentAuth("401: the key was not accepted"),
    "429": lambda: AgentTransient("429: too many requests"),
    "500": lambda: AgentTransient("500: a failure on the other side"),
    "auth": lambda: AgentAuth("not logged in"),
    "bad_request": lambda: AgentBadRequest("400: no such model"),
    "crash": lambda: AgentTransient("the agent's program crashed (exit code -11)"),
    "quota": lambda: AgentQuota("the quota is used up"),
    "refused_edit": lambda: AgentRefused("the agent was not allowed to edit a file"),
    "timeout": lambda: AgentTimeout("no answer in time"),
}
"""Faults that are errors; `hang`, `half_json` and `empty` are played."""

PLAYED = frozenset({"hang", "half_json", "empty"})
_IN = re.compile(r"in (\d+) ?(s|min|h)")
_SECONDS = {"s": 1, "min": 60, "h": 3600}


@dataclass(frozen=True)
class AnswerEntry:
    """An answer, as the file has it."""

    data: Mapping[str, Any]

    @property
    def recorded(self) -> bool:
        """Whether it answers one recorded request instead of all that match."""
        return "request" in self.data

    @property
    def times(self) -> int | None:
        """How often it answers; None stands for always."""
        if not self.recorded:
            return self.data.get("times")
        # A fault that was added to a recording comes first, and the recorded answer next.
        return 1 if self.data.get("fault") is None else 2

    @cached_property
    def request_key(self) -> str:
        """What a recorded request is found by."""
        return digest(dict(self.data["request"]))

    def fits(self, request: AgentRequest, call: Call, agent: str, key: Callable[[], str]) -> bool:
        """Tells whether everything that the entry names matches; `key` is the request's own."""
        seen = {"agent": agent, "model": request.model or "", "step": call.step}
        for name in MATCHES & self.data.keys():
            wanted = self.data[name]
            match name:
                case "contains":
                    fits = str(wanted) in request.prompt
                case "regex":
                    fits = _found(str(wanted), request.prompt)
                case "request":
                    fits = self.request_key == key()
                case "key":
                    fits = str(wanted) == effect_key(call)
                case _:
                    fits = str(wanted) == seen[name]
            if not fits:
                return False
        return True

    def answer(self, request: AgentRequest, used: int = 0) -> Reply | Awaitable[Reply]:
        """Answers at once, or plays the fault; `used` is how often it has answered before."""
        fault = None if self.recorded and used else self.data.get("fault")
        name, until = _fault_of(fault)
        if name in FAULTS:
            error = _with_time(FAULTS[name](), until)
            raise with_usage(error, self._usage()) if "usage" in self.data else error
        if name == "hang":
            return _for_ever()
        if not name and self.data.get("error"):
            raise _recorded_error(self.data["error"])
        files = file_edits.apply(self.data.get("files") or {}, request)
        if not name and self.recorded:
            return Reply.from_json(dict(self.data.get("reply") or {"text": ""}))
        text = self._text(name)
        wants = request.schema
        if wants is None and "json" in self.data and fault is None:
            wants = {}
        text = text or ("Done." if files and name != "empty" else "")
        return replace(judge(Whole(text, usage=self._usage()), wants), files=files)

    def _text(self, fault: str) -> str:
        if fault == "empty":
            return ""
        text = str(self.data.get("text") or (self.data.get("reply") or {}).get("text") or "")
        if "json" in self.data:
            text = json.dumps(self.data["json"], ensure_ascii=False)
        if fault == "half_json":
            text = text or '{"verdict": "pass"}'
            text = text[: len(text) // 2]
        return text

    def _usage(self) -> Usage | None:
        if "usage" not in self.data:
            return NOTHING
        usage = self.data["usage"]
        return Usage(**usage) if usage is not None else None


def find_entry(
    entries: Sequence[AnswerEntry],
    request: AgentRequest,
    call: Call,
    agent: str,
    used: Counter[int],
) -> int | None:
    """Returns the number of the entry that answers; `used` counts how often each one has.

    That is the one recorded for this very call, or else the first that fits.
    """
    plain = cache(lambda: digest(portable_request(request)))
    fitting = [
        number
        for number, entry in enumerate(entries)
        if (entry.times is None or used[number] < entry.times)
        and entry.fits(request, call, agent, plain)
    ]
    same_call = (n for n in fitting if entries[n].data.get("place") == call_location(call))
    return next(same_call, fitting[0] if fitting else None)


def portable_request(request: AgentRequest) -> dict[str, Any]:
    """Returns a request as recordings keep it: the same wherever its workspace is."""
    data = request.to_json()
    folder = data.pop("workspace", None)
    text = replace_lone_surrogates(json.dumps(data, ensure_ascii=False))
    plain: dict[str, Any] = json.loads(text)
    if folder is not None:
        plain = _without(plain, str(folder))
        plain["workspace"] = WORKSPACE
    return plain


def effect_key(call: Call) -> str:
    """Returns the key a step asked under: the last part of the effect's name."""
    return str(call.effect).rpartition("/")[2].partition("#")[0]


def call_location(call: Call) -> str:
    """Returns what tells equal requests of a run apart."""
    return f"{call.step}/{call.effect}@{call.attempt}"


def entry_problems(raw: Any) -> list[str]:
    """Returns everything that is wrong with an entry."""
    if not isinstance(raw, dict):
        return ["is not a mapping"]
    known = MATCHES | ANSWERS | DETAILS
    found = [
        f"unknown key {key!r} (valid: {', '.join(sorted(known))})"
        for key in sorted(map(str, raw.keys() - known))
    ]
    if "request" not in raw and not raw.keys() & ANSWERS:
        found.append("answers nothing (give it text, json, files or fault)")
    if "text" in raw and "json" in raw:
        found.append("has both text and json")
    times = raw.get("times", 1)
    if not isinstance(times, int) or times < 1:
        found.append(f"times is {times!r}; it is a whole number from 1")
    if "regex" in raw:
        found += _regex_problems(str(raw["regex"]))
    return [*found, *_fault_problems(raw.get("fault")), *_usage_problems(raw.get("usage"))]


def _found(pattern: str, text: str) -> bool:
    try:
        return search(pattern, text)
    except OutOfBounds as error:
        raise ConfigError(f"the regex {pattern!r} of a script: {error}") from error


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
        return [f"usage is {usage!r}; it has tokens_in, tokens_out, usd and model"]
    return []


def _fault_of(fault: Any) -> tuple[str, Any]:
    """Returns a fault's name and, for a quota, when it ends."""
    if isinstance(fault, dict) and len(fault) == 1:
        ((name, until),) = fault.items()
        return str(name), until
    return ("" if fault is None else str(fault)), None


def _fault_problems(fault: Any) -> list[str]:
    if fault is None:
        return []
    name, until = _fault_of(fault)
    if name not in FAULTS and name not in PLAYED:
        return [f"fault {name!r} is none of: {', '.join(sorted({*FAULTS, *PLAYED}))}"]
    try:
        _with_time(AgentQuota(), until)
    except ValueError:
        return [f"quota until {until!r} is no time, such as 2030-01-01T00:00:00Z or `in 5 min`"]
    return []


def _with_time(error: AgentError, until: Any) -> AgentError:
    """Returns a quota's error with the time it ends; raises ValueError when that is none."""
    if not isinstance(error, AgentQuota) or until is None:
        return error
    if isinstance(until, str):
        ahead = _IN.fullmatch(until)
        if ahead:
            seconds = int(ahead[1]) * _SECONDS[ahead[2]]
            return AgentQuota(str(error), until=datetime.now(UTC) + timedelta(seconds=seconds))
        until = datetime.fromisoformat(until)
    if not isinstance(until, datetime):
        raise ValueError(until)  # noqa: TRY004  # a date or a number in a file, not in code
    return AgentQuota(str(error), until=until if until.tzinfo else until.replace(tzinfo=UTC))


def _recorded_error(recorded: Mapping[str, Any]) -> SignoffError:
    error = error_from_json(dict(recorded))
    if "usage" in recorded and isinstance(error, AgentError):
        return with_usage(error, Usage(**recorded["usage"]))
    return error


def _without(value: Any, folder: str) -> Any:
    match value:
        case str():
            return value.replace(folder, WORKSPACE)
        case dict():
            return {key: _without(each, folder) for key, each in value.items()}
        case list():
            return [_without(each, folder) for each in value]
        case _:
            return value


async def _for_ever() -> Reply:
    await asyncio.Event().wait()
    raise AssertionError("nothing sets that event")
