"""The parts of the engine that a run uses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from signoff.core.workflow import Workflow
from signoff.runtime.agent_limits import AgentGate
from signoff.runtime.late_replies import LateReplies
from signoff.runtime.performers import Performers
from signoff.runtime.ports import Clock, Notice, Observer, Progress
from signoff.runtime.store_port import Store

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
    may_block: Callable[[], None]
    """Called before user code that may block the event loop."""
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
