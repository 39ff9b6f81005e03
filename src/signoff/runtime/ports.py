"""The ports of the runtime: what it needs from outside, as small protocols.

Agents, observers and file ports implement these, and the runtime imports none of their
implementations. Only the real clock is here; tests use one that does not move. The port for
stores is in `store_port`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from signoff.core.digest import text_digest
from signoff.core.errors import OperatorError
from signoff.runtime.store_port import DispatchToken

if TYPE_CHECKING:
    from signoff.core.effects import AgentRequest, EffectId, Reply
    from signoff.core.events import Event


class Clock(Protocol):
    """Time, and waiting for it to pass."""

    def now(self) -> float:
        """Returns seconds since 1970."""

    def monotonic(self) -> float:
        """Returns seconds that only ever grow."""

    async def sleep(self, seconds: float) -> None:
        """Returns after that many seconds."""


Slot = Callable[[str], AbstractAsyncContextManager[None]]


class SystemClock:
    """The system's time; within one process, it does not jump when the wall clock is set."""

    def __init__(self) -> None:
        # Wall time is read once: durations and order inside a process then follow the
        # monotonic clock, whatever an administrator or a time server does to the other.
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Returns seconds since 1970."""
        return time.monotonic() + self._offset

    def monotonic(self) -> float:
        """Returns seconds that only ever grow."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        # Imported here because commands that only read the time should start fast.
        import asyncio

        await asyncio.sleep(seconds)


class Call(NamedTuple):
    """What an agent gets besides the request itself."""

    run: str
    effect: EffectId
    attempt: int = 1
    emit: Callable[[str], None] = lambda _text: None
    """Takes streamed output for the observers."""
    started: Callable[[dict[str, Any]], None] = lambda _process: None
    """Takes the process that answers, so that the next runner can end it if this one dies."""
    step: str = ""
    """The step that asks."""
    agent: str = ""
    """The agent's name as the step used it."""
    visit: int = 1
    """How often the run has come to this step."""
    step_attempt: int = 1
    """How often the step's handler was tried in this visit."""
    run_key: str = ""
    """Distinguishes the run from every other, even from one of the same name elsewhere."""
    folder: str = ""
    """The folder the run was started in; programs run there by default."""
    directory: str = ""
    """The run's folder, for agents that read and write its files; empty if it has none."""
    slot: Slot = lambda _agent: nullcontext()
    """Holds a slot under another agent's limits, for an agent that passes the request on."""

    earlier: Callable[[], Iterable[EarlierCall]] = tuple
    """Reads the calls to this agent that have ended in this run, those before a resume included."""

    def passed_to(self, agent: str) -> Call:
        """Returns the call for another agent that answers instead, with what it answered before."""

        def earlier() -> Iterator[EarlierCall]:
            for each in self.earlier():
                if each.answered_by == agent:
                    yield each._replace(answered_by="")

        return self._replace(earlier=earlier)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at one effect, so a provider can recognize a repeat."""
        return idempotency_key(
            self.run_key or self.run, self.step, self.visit, self.step_attempt, self.effect
        )


class EarlierCall(NamedTuple):
    """An attempt at an agent call that has ended."""

    request: AgentRequest
    call: Call
    answered_by: str = ""
    """Another agent, or a human, that answered instead; empty when none did."""


def idempotency_key(run: str, step: str, visit: int, attempt: int, effect: str) -> str:
    """Returns a name for an effect that is the same for every attempt at it."""
    return text_digest(f"{run}/{step}/{visit}/{attempt}/{effect}")


class Agent(Protocol):
    """Answers prompts.

    An agent may also have `capabilities: Capabilities`, on its class or on the instance;
    without them it counts as a plain model that edits nothing.
    """

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers, or raises one of the `AgentError` family."""


class Rate(NamedTuple):
    """A number of calls in a number of seconds."""

    calls: int
    seconds: float


UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "day": 86400.0}
_WORDS = "|".join("".join(f"[{c}{c.upper()}]" for c in unit) for unit in UNITS)
# Not `(?i)`: without regard to case, letters of other alphabets match some of these.
RATE = rf"^\s*([1-9][0-9]*)\s*/\s*({_WORDS})\s*$"


def parse_rate(text: str) -> Rate:
    """Parses a rate such as `10/min`; raises ValueError if it is not one."""
    match = re.match(RATE, text)
    if match is None:
        raise ValueError(text)
    return Rate(int(match[1]), UNITS[match[2].lower()])


@dataclass(frozen=True)
class AgentLimits:
    """The limits of one agent; None means no limit.

    Each field is an option of every agent in the settings, which checks it by the metadata here.
    `AgentGate` holds calls back until all of them allow one.
    """

    concurrency: int | None = field(
        default=None, metadata={"ge": 1, "description": "a whole number from 1"}
    )
    """Concurrent calls."""
    rate: str | None = field(
        default=None,
        metadata={"pattern": RATE, "description": f'as in "10/min"; units: {", ".join(UNITS)}'},
    )
    """Calls started within some time."""
    retries: int | None = field(
        default=None, metadata={"ge": 0, "description": "a whole number from 0"}
    )
    """How often a call with a transient error is repeated; None means the engine's default."""


class ModelChoice(StrEnum):
    """Which model answers when neither the request nor the settings name one."""

    DEFAULT = "default"
    """The agent has a default of its own."""
    REQUIRED = "required"
    """None: a model has to be named."""
    INSTALLED = "installed"
    """The first one the agent lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an agent can do, declared by its kind.

    Other code distinguishes agents only by these: a new kind that declares them is treated like
    the built-in ones, without any list of names to extend.
    """

    edits_files: bool = False
    """It can change files in a workspace."""
    json_schema: bool = False
    """The model is held to a JSON schema, not only asked in the prompt to follow it."""
    system_prompt: bool = False
    """A system prompt reaches the model as one, not as a part of the prompt."""
    streaming: bool = False
    """Output is shown while it is written."""
    prompt_caching: bool = False
    """The start of a prompt that was sent before costs less."""
    reports_price: bool | None = None
    """Replies carry their cost in dollars; None if the agent does not declare it."""
    free: bool = False
    """No call is billed."""
    length_option: str = ""
    """The option of a request that limits the tokens of its answer; empty if there is none."""
    model_choice: ModelChoice = ModelChoice.DEFAULT
    provider: str = ""
    """Who serves its model, by the name that OpenTelemetry uses, such as `openai`."""
    chat: bool = False
    """A request is a single call of a model; otherwise a program decides how often it calls one."""
    is_model: bool = True
    """A model answers; `auto` chooses only among these."""
    named_only: bool = False
    """Nobody knows what the program can do but who set it up, so `auto` never chooses it unless
    `among` lists it."""
    judges: bool = True
    """Its model is large enough to review; `auto` chooses others only if `among` lists them."""
    answered_by_human: bool = False
    """Answers come through the inbox; the run waits instead of calling it."""
    deterministic: bool = False
    """A program or function computes critiques from the bare artifact, and they are exact."""
    whole_project: bool = False
    """A critique is about all files at once, in the project that they belong to."""
    needs_agents: bool = False
    """It passes requests on, and its factory takes the other agents as `agents`."""
    path_options: tuple[str, ...] = ()
    """Its options that name files. Relative paths in the settings start at the project's
    folder, or next to the user's settings file, wherever a command is used."""


@runtime_checkable
class ModelDependent(Protocol):
    """An agent that can do more with one model than with another."""

    async def capabilities_for(self, model: str | None) -> Capabilities:
        """Returns what it can do with a model; None means its default model."""


def capabilities_of(agent: object) -> Capabilities:
    """Returns what an agent or a kind of agent declares; the defaults if it declares nothing."""
    declared = getattr(agent, "capabilities", None)
    return declared if isinstance(declared, Capabilities) else Capabilities()


async def capabilities_for(agent: object, model: str | None) -> Capabilities:
    """Returns what an agent declares for one model."""
    if isinstance(agent, ModelDependent):
        return await agent.capabilities_for(model)
    return capabilities_of(agent)


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice to the observers of a run."""

    run: str


@dataclass(frozen=True, slots=True)
class Recorded(Notice):
    """Events that are now durable."""

    events: Sequence[Event]
    seq: int = 0
    """The number of their commit in the run's journal."""


@dataclass(frozen=True, slots=True)
class Progress(Notice):
    """A message from a handler or an agent while it works; it is not recorded."""

    step: str
    scope: str
    text: str


@dataclass(frozen=True, slots=True)
class Retrying(Notice):
    """An effect had a transient error and will be retried."""

    effect: str
    error: str
    seconds: float


class Observer(Protocol):
    """Watches runs; an observer that fails never stops a run."""

    def notice(self, notice: Notice) -> None:
        """Takes one notice, quickly."""


@runtime_checkable
class ClosableObserver(Observer, Protocol):
    """An observer that has something to finish when the program ends."""

    def close(self) -> None:
        """Finishes its work; it is cut off if that takes too long."""


class FilePort(Protocol):
    """Where `ctx.write` puts files; the run directory, or memory in tests."""

    def write(self, run: str, path: str, text: str) -> None:
        """Writes a file of a run, atomically; raises `UnsafePath`."""

    def read(self, run: str, path: str) -> bytes | None:
        """Returns what a file of a run holds; None when there is none.

        Raises `UnsafePath`, or `UnreadableFile` for anything but a regular file of a sensible size.
        """

    def folder(self, run: str) -> Path:
        """Returns the absolute folder of a run's files."""


NO_AGENTS: Mapping[str, Agent] = {}


# The port to a dispatcher: what brings runs to workers.
#
# A dispatcher decides where and when a run is driven, and never what happened: that is in the
# journal. It may lose, repeat, delay or reorder anything. A worker drives a run only if the store
# lets it, and looks into the store by itself from time to time.


class DispatcherUnavailable(OperatorError):  # noqa: N818  # named as the errors of the tree are
    """What brings runs to workers cannot be reached; they stay queued."""


class Rest(NamedTuple):
    """How a run came to rest, as far as a dispatcher has to know."""

    seconds: float | None = None
    """How long until it continues by itself; None if that depends on a human."""
    ended: bool = False
    """Whether nothing is to be done until someone wakes it."""


Drive = Callable[[str, DispatchToken | None], Awaitable[Rest]]
"""Drives a run by name until it rests; raises if this worker cannot, and another one should."""

QueueNeeds = Callable[[], Sequence[Sequence[str]]]
"""Returns what runs need that this worker can drive: one sorted list for each kind of run."""


class Dispatcher(Protocol):
    """Brings runs to workers that can do what the runs need.

    The first three say that a run may continue; each may be called again, or too early.
    """

    async def submit(self, run: str, needs: Sequence[str]) -> None:
        """A run was handed over."""

    async def wake(self, run: str, needs: Sequence[str]) -> None:
        """A run that rested may continue, perhaps because it was answered."""

    async def at(self, run: str, needs: Sequence[str], due_at: float) -> None:
        """A run continues by itself at a time, in seconds since 1970."""

    async def check(self) -> str:
        """Returns where it is; raises `DispatcherUnavailable` if it cannot be reached."""

    async def serve(self, drive: Drive, needs: QueueNeeds, slots: int) -> None:
        """Lets this worker drive runs, until it is cancelled."""
