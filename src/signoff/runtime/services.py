"""The parts of the engine that a run uses."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from signoff.core.workflow import Workflow
from signoff.runtime.performers import Performers
from signoff.runtime.ports import AgentLimits, Clock, Notice, Observer, Progress, parse_rate
from signoff.runtime.store_port import RunId, Store

# Replies that could not be recorded: paid for, and kept until the run continues.
#
# The store keeps them next to the journal. While it cannot be written, for example because its
# server is away, they stay in memory: a worker waits for the server and then continues its runs.


class LateReply(NamedTuple):
    """What one attempt at an effect returned, as `Store.keep_late` stores it."""

    effect: str
    attempt: int
    outcome: str


class LateReplies:
    """The late replies of a process that are not in the store yet."""

    def __init__(self) -> None:
        self._replies: dict[RunId, list[LateReply]] = {}

    def add(self, run: RunId, reply: LateReply) -> None:
        """Keeps a reply in memory."""
        self._replies.setdefault(run, []).append(reply)

    def move_to(self, store: Store, run: RunId) -> None:
        """Stores the replies of a run; those that the store does not take stay here.

        Its last commit may have been applied although the answer was lost. A reply that the
        journal has is not looked up among the late ones, so nothing counts twice.
        """
        replies = self._replies.get(run, [])
        while replies:
            store.keep_late(run, *replies[0])
            del replies[0]
        self._replies.pop(run, None)


# How many calls an agent takes at once, and how often.


class AgentGate:
    """Lets calls to one agent through as its limits allow, first come first served."""

    def __init__(self, limits: AgentLimits, clock: Clock) -> None:
        self.attempts = None if limits.retries is None else limits.retries + 1
        """How often a call is tried, if the agent sets its own number."""
        self._rate = parse_rate(limits.rate) if limits.rate is not None else None
        self._clock = clock
        self._slots = asyncio.Semaphore(limits.concurrency) if limits.concurrency else nullcontext()
        self._turn = asyncio.Lock()
        self._started: deque[float] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Holds one of the agent's slots for the duration of a call."""
        async with self._slots:
            await self.pace()
            yield

    async def pace(self) -> None:
        """Returns when another call may start; a retry counts as a call too."""
        if self._rate is None:
            return
        async with self._turn:
            now = self._clock.monotonic()
            while self._started and now - self._started[0] >= self._rate.seconds:
                self._started.popleft()
            if len(self._started) >= self._rate.calls:
                await self._clock.sleep(self._started[0] + self._rate.seconds - now)
                self._started.popleft()
            self._started.append(self._clock.monotonic())


log = logging.getLogger("signoff")


@dataclass(frozen=True)
class Backoff:
    """How often and with which pauses transient errors of agents are retried."""

    attempts: int = 4
    first: float = 1.0
    """Seconds before the second attempt; each further pause is twice as long."""
    longest: float = 60.0

    def pause(self, attempt: int, chance: float, after: float | None = None) -> float:
        """Returns the seconds to wait after a failed attempt, with some jitter.

        `after` is how long the server asked to wait, if it did; the pause is never shorter.
        """
        if after is not None:
            return after * (1.0 + chance / 4)
        whole = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return float(whole * (0.75 + chance / 2))


@dataclass(frozen=True)
class EngineServices:
    """The services that all runs of an engine share."""

    store: Store
    clock: Clock
    performers: Performers
    gates: Mapping[str, AgentGate]
    observers: tuple[Observer, ...]
    backoff: Backoff
    default_roles: Mapping[str, str]
    """Agents by role, for roles that neither the settings nor the workflow assign."""
    presence: bool = False
    """Whether every approval needs the signature of a passkey."""
    late_replies: LateReplies = field(default_factory=LateReplies)

    def roles_of(self, workflow: Workflow) -> Mapping[str, str]:
        """Returns the agents by role, for roles that the settings do not assign."""
        return {**self.default_roles, **workflow.roles}

    def notify(self, notice: Notice) -> None:
        """Passes a notice to every observer, without known secrets; a failed one is ignored."""
        if isinstance(notice, Progress):
            # Events and errors have been cleaned by the journal and the performers already.
            notice = replace(notice, text=self.performers.secrets.hide(notice.text))
        for observer in self.observers:
            try:
                observer.notice(notice)
            except Exception:  # an observer must never break a run
                log.warning("observer %s failed", type(observer).__name__, exc_info=True)
