"""The seams of the runtime: what it needs from outside, as small protocols.

Agents, clocks, observers and places for files implement these; the runtime imports none of
their implementations. Stores have a seam of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from signoff.core.digest import text_digest
from signoff.core.effects import AgentRequest, EffectId, Reply
from signoff.core.events import Event


class Clock(Protocol):
    """Time, and waiting for it to pass."""

    def now(self) -> float:
        """Returns seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Returns seconds that only ever grow."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        ...


Slot = Callable[[str], AbstractAsyncContextManager[None]]


class Call(NamedTuple):
    """What an agent is told about the call besides the request itself."""

    run: str
    effect: EffectId
    attempt: int = 1
    emit: Callable[[str], None] = lambda _text: None
    """Takes streamed output for whoever watches."""
    started: Callable[[dict[str, Any]], None] = lambda _process: None
    """Takes the process that answers, so it can be ended if we die first."""
    step: str = ""
    """The step that asks."""
    agent: str = ""
    """Who is asked, by the name the step used."""
    visit: int = 1
    """How often the run has come to this step."""
    step_attempt: int = 1
    """How often the step's handler was tried in this visit."""
    run_key: str = ""
    """Tells the run from every other, also from one of the same name elsewhere."""
    folder: str = ""
    """Where the run was started; what is not told another place works there."""
    slot: Slot = lambda _agent: nullcontext()
    """Holds a place under the limits of another agent, for one that lets it answer instead."""

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at one effect, so a provider can recognise a repeat."""
        return idempotency_key(
            self.run_key or self.run, self.step, self.visit, self.step_attempt, self.effect
        )


def idempotency_key(run: str, step: str, visit: int, attempt: int, effect: str) -> str:
    """Names an effect for whoever performs it: the same however often it is tried."""
    return text_digest(f"{run}/{step}/{visit}/{attempt}/{effect}")


class Agent(Protocol):
    """Who answers a prompt."""

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers, or raises one of the `AgentError` family."""
        ...


@dataclass(frozen=True, slots=True)
class Notice:
    """Something for whoever watches a run."""

    run: str


@dataclass(frozen=True, slots=True)
class Recorded(Notice):
    """Events that are now durable."""

    events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class Progress(Notice):
    """What a handler or an agent says while it works; not recorded."""

    step: str
    scope: str
    text: str


@dataclass(frozen=True, slots=True)
class Retrying(Notice):
    """An effect met a passing fault and is tried again."""

    effect: str
    error: str
    seconds: float


class Observer(Protocol):
    """Watches runs; whatever it does or fails to do, the run goes on."""

    def notice(self, notice: Notice) -> None:
        """Takes one notice, quickly."""
        ...


class FilePort(Protocol):
    """Where `ctx.write` puts files; the run directory, or memory in tests."""

    def write(self, run: str, path: str, text: str) -> None:
        """Writes a file of a run, atomically; raises `UnsafePath`."""
        ...

    def read(self, run: str, path: str) -> bytes | None:
        """Returns what a file of a run holds; None when there is none; raises `UnsafePath`."""
        ...

    def working_copies(self, run: str) -> Path:
        """Returns the folder for a run's working copies, outside the run's own folder."""
        ...


NO_AGENTS: Mapping[str, Agent] = {}
