"""One entry of a file of answers: the requests it matches, and its answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any

from signoff import errors
from signoff.agents import file_edits
from signoff.agents.answer import ModelAnswer, judge, replace_lone_surrogates
from signoff.agents.quota_resets import find_reset_time
from signoff.core.digest import digest
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import USAGE_AMOUNTS, Usage
from signoff.documents.bounded import OutOfBounds, search
from signoff.runtime.effect_errors import FREE, error_from_json, with_usage
from signoff.runtime.ports import Call

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

    @cached_property
    def request_key(self) -> str:
        """The digest of the recorded request."""
        return digest(dict(self.data["request"]))

    def matches(
        self, request: AgentRequest, call: Call, agent: str, key: Callable[[], str]
    ) -> bool:
        """Returns whether every match key fits; `key` returns the digest of the request."""
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
            and ("regex" not in data or _search(str(data["regex"]), request.prompt))
            and ("request" not in data or self.request_key == key())
        )

    def answer(self, request: AgentRequest, used: int = 0) -> Reply | Awaitable[Reply]:
        """Returns the answer or simulates the fault; `used` is how often it has answered before."""
        fault = None if self.recorded and used else self.data.get("fault")
        name, until = _parse_fault(fault)
        if name in FAULTS:
            error = FAULTS[name]()
            if isinstance(error, errors.AgentQuota) and until is not None:
                error.until = _parse_time(until)
            raise with_usage(error, self._usage()) if "usage" in self.data else error
        if name == "hang":
            return _hang()
        if not name and self.data.get("error"):
            raise _recorded_error(self.data["error"])
        files = file_edits.apply(self.data.get("files") or {}, request)
        if not name and self.recorded:
            return Reply.from_json(dict(self.data.get("reply") or {"text": ""}))
        schema = request.schema
        if schema is None and "json" in self.data and fault is None:
            schema = {}
        text = (
            "" if name == "empty" else self._text() or ("Done." if self.data.get("files") else "")
        )
        if name == "half_json":
            text = text or '{"verdict": "pass"}'
            text = text[: len(text) // 2]
        return replace(judge(ModelAnswer(text, usage=self._usage()), schema), files=files)

    def _text(self) -> str:
        if "json" in self.data:
            return json.dumps(self.data["json"], ensure_ascii=False)
        return str(self.data.get("text") or (self.data.get("reply") or {}).get("text") or "")

    def _usage(self) -> Usage | None:
        usage = self.data.get("usage", FREE)
        return Usage(**usage) if isinstance(usage, Mapping) else usage


def find_entry(
    entries: Sequence[AnswerEntry],
    request: AgentRequest,
    call: Call,
    agent: str,
    used: Counter[int],
) -> int | None:
    """Returns the index of the entry that answers; `used` counts the uses of each entry.

    This is the entry recorded for the same call, or the first that matches.
    """
    request_key = cache(lambda: digest(portable_request(request)))
    matching = [
        number
        for number, entry in enumerate(entries)
        if (entry.times is None or used[number] < entry.times)
        and entry.matches(request, call, agent, request_key)
    ]
    # Equal requests of a fan-out arrive in another order on replay, so the call itself decides.
    same_call = (n for n in matching if entries[n].data.get("place") == call_location(call))
    return next(same_call, matching[0] if matching else None)


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


def _search(pattern: str, text: str) -> bool:
    try:
        return search(pattern, text)
    except OutOfBounds as error:
        raise errors.ConfigError(f"regex {pattern!r} of a script: {error}") from error


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


async def _hang() -> Reply:
    await asyncio.Event().wait()
    raise AssertionError("the event is never set")
