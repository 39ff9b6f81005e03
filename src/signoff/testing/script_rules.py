"""What a rule of a script says: when it fits, what it answers, and the faults it can play."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from signoff.agents.answer import ModelAnswer as Whole
from signoff.agents.answer import judge
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
)
from signoff.runtime.faults import costing
from signoff.runtime.ports import Call
from signoff.testing import edits
from signoff.testing.scripted import NOTHING, Delayed, ScriptedAnswer

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
class ScriptRule:
    """One rule of a script."""

    match: Mapping[str, str]
    says: Mapping[str, Any]
    times: int | None = None

    def fits(self, request: AgentRequest, call: Call) -> bool:
        """Tells whether everything the rule names is so."""
        seen = {
            "agent": call.agent,
            "model": request.model or "",
            "step": call.step,
            "key": key_of(call),
        }
        for name, wanted in self.match.items():
            match name:
                case "contains":
                    fits = wanted in request.prompt
                case "regex":
                    fits = _found(wanted, request.prompt)
                case _:
                    fits = wanted == seen[name]
            if not fits:
                return False
        return True

    def answer(self) -> ScriptedAnswer:
        """Returns what to say, the delay included."""
        said: ScriptedAnswer = self.said
        delay = self.says.get("delay")
        return Delayed(float(delay), said) if delay else said

    def said(self, request: AgentRequest) -> Reply | Awaitable[Reply]:
        """Answers at once, or plays the fault."""
        fault = self.says.get("fault")
        name, until = fault_of(fault)
        if name in FAULTS:
            error = with_time(FAULTS[name](), until)
            raise costing(error, self._usage()) if "usage" in self.says else error
        if name == "hang":
            return _for_ever()
        text = _text(self.says)
        if name == "half_json":
            whole = text or '{"verdict": "pass"}'
            text = whole[: len(whole) // 2]
        files = edits.apply(self.says.get("files") or {}, request)
        return self._judged(text or ("Done." if files and name != "empty" else ""), files, request)

    def _judged(self, text: str, files: dict[str, str], request: AgentRequest) -> Reply:
        wants = request.schema
        if wants is None and "json" in self.says and self.says.get("fault") is None:
            wants = {}
        return replace(judge(Whole(text, usage=self._usage()), wants), files=files)

    def _usage(self) -> Usage | None:
        if "usage" not in self.says:
            return NOTHING
        usage = self.says["usage"]
        return Usage(**usage) if usage is not None else None


def fault_of(fault: Any) -> tuple[str, Any]:
    """Returns a fault's name and, for a quota, when it ends."""
    if isinstance(fault, dict) and len(fault) == 1:
        ((name, until),) = fault.items()
        return str(name), until
    return ("" if fault is None else str(fault)), None


def fault_problems(fault: Any) -> list[str]:
    """Returns what is wrong with a fault as a person wrote it."""
    if fault is None:
        return []
    name, until = fault_of(fault)
    if name not in FAULTS and name not in PLAYED:
        return [f"fault {name!r} is none of: {', '.join(sorted({*FAULTS, *PLAYED}))}"]
    try:
        with_time(AgentQuota(), until)
    except ValueError:
        return [f"quota until {until!r} is no time, such as 2030-01-01T00:00:00Z or `in 5 min`"]
    return []


def with_time(error: AgentError, until: Any) -> AgentError:
    """Returns a quota's error with the time it returns; raises ValueError when that is none."""
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


def _text(says: Mapping[str, Any]) -> str:
    if "json" in says:
        return json.dumps(says["json"], ensure_ascii=False)
    return "" if says.get("fault") == "empty" else str(says.get("text") or "")


async def _for_ever() -> Reply:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets that event")


def key_of(call: Call) -> str:
    """Returns the key a step asked under: the last part of the effect's name."""
    return str(call.effect).rpartition("/")[2].partition("#")[0]


def _found(pattern: str, text: str) -> bool:
    try:
        return search(pattern, text)
    except OutOfBounds as error:
        raise ConfigError(f"the regex {pattern!r} of a script: {error}") from error
