"""What a run needs of the engine around it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from signoff.runtime.agent_limits import AgentGate
from signoff.runtime.performers import Performers
from signoff.runtime.ports import Clock, Notice, Observer, Progress, Retrying
from signoff.runtime.store_port import Store

log = logging.getLogger("signoff")


@dataclass(frozen=True)
class Backoff:
    """How passing faults of agents are met."""

    attempts: int = 4
    first: float = 1.0
    """Seconds before the second attempt; each further pause is twice as long."""
    longest: float = 60.0

    def pause(self, attempt: int, chance: float, after: float | None = None) -> float:
        """Returns the seconds to wait after a failed attempt, spread a little by chance.

        `after` is when the other side wants to be asked again, if it said so: never sooner.
        """
        if after is not None:
            return after * (1.0 + chance / 4)
        whole = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return float(whole * (0.75 + chance / 2))


@dataclass(frozen=True)
class EngineServices:
    """The engine's parts, as a run sees them."""

    store: Store
    clock: Clock
    performers: Performers
    gates: Mapping[str, AgentGate]
    observers: tuple[Observer, ...]
    backoff: Backoff
    may_block: Callable[[], None]
    """Called before code of the author's that may hold up the event loop."""

    def notify(self, notice: Notice) -> None:
        """Tells every observer; one that fails is left alone. Logs get no known secrets."""
        hide = self.performers.secrets.hide
        match notice:
            case Progress():
                notice = replace(notice, text=hide(notice.text))
            case Retrying():
                notice = replace(notice, error=hide(notice.error))
        for observer in self.observers:
            try:
                observer.notice(notice)
            except Exception:  # whatever an observer does, the run goes on
                log.warning("observer %s failed", type(observer).__name__, exc_info=True)
