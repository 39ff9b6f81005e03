"""A node of the graph: `StepDef`, its edges, conditions and gate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from signoff.core.context import StepContext
from signoff.core.frozen import read_only
from signoff.core.outcome import End, Outcome
from signoff.core.spend import Limits

Result = tuple[Outcome, dict[str, Any]]
HandlerFunction = Callable[..., Result | Awaitable[Result]]
"""`(ctx, **params) -> (Outcome, update)`, plain or async."""


WORKER = "worker"
"""The role of the agent that follows the instructions of a step."""

ITERATION = "iteration"
"""The parameter of a step that repeats which has the round; a run counts it by itself."""


class HandlerObject(ABC):
    """A handler that hands its step to an agent; the engine asks it for the function to call.

    What an agent gets and how its reply becomes an outcome is up to the object, so a notation
    can bring its own without a special case in the engine.
    """

    agent: str
    """A role, mapped to an agent by the settings, or an agent's name."""

    @property
    @abstractmethod
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes that the agent's reply can lead to."""

    @abstractmethod
    def function(self, step: StepDef) -> HandlerFunction:
        """Returns the function that does the work of a step; it takes only the context."""

    @abstractmethod
    def describe(self) -> Any:
        """Returns everything that a run depends on as JSON, for the digest of the definition."""


Handler = HandlerFunction | HandlerObject | None


@dataclass(frozen=True)
class Condition:
    """Something that must be true before or after a step, checked by the engine."""

    name: str
    check: Callable[[StepContext], bool | Awaitable[bool]]
    error: str
    """What the agent or the human gets to read when it is false."""


OnLimit = Literal["end", "ask"]


@dataclass(frozen=True)
class Edge:
    """Where an outcome leads, and how often it may."""

    to: str | End | None
    """A step's id, or how the run ends; None is plain completion."""
    bound: int | None = None
    """How many times it may be taken; a loop's edge gets a default when this is None."""
    starts_iteration: bool = False
    """Whether taking it starts the next round."""
    on_limit: OnLimit = "end"
    """At the bound: end the run with `round_limit`, or ask a human."""
    resets: bool = False
    """Whether its count starts again at 0 when the step is left by an edge that is no loop."""
    grants_iteration: bool = False
    """Whether taking it allows one more round than `max_iterations`: for edges that only a
    human's request leads to. It is bounded like a loop, so every run still ends."""


@dataclass(frozen=True)
class GateOption:
    """One option of a gate, and where it leads."""

    label: str
    next: str | End | Edge | None
    requires_input: bool = False


@dataclass(frozen=True)
class Gate:
    """Where a finished step's content waits for a human's decision."""

    prompt: str
    options: Sequence[GateOption] = (
        GateOption("approve", None),
        GateOption("reject", End.REJECTED),
    )
    context: Sequence[str] = ()
    """Dotted names of state that the approver is shown; the decision is bound to their values."""
    look_up: Callable[[Mapping[str, Any], str], Any] | None = None
    """Returns the value of such a name in the state, if names have a meaning of their own."""
    presence: bool = False
    """Whether it needs the signature of a passkey to pass; options that end the run as rejected
    need none."""

    def __post_init__(self) -> None:
        """Makes its lists read-only."""
        _make_read_only(self, "options", "context")


@dataclass(frozen=True)
class StepDef:
    """One step: what is done, what must hold, and where each outcome leads."""

    id: str
    title: str = ""
    actions: Sequence[str] = ()
    """Instructions. A worker, which is an agent or a human, gets them before the handler runs."""
    handler: Handler = None
    """A function, a `Dispatch`, or None for a step that only has instructions."""
    next: Mapping[Outcome, str | End | Edge | None] = field(default_factory=dict)
    on_error: str | None = None
    """Where to go when the handler raises; the error is in the state as `_error`."""
    phase: str = ""
    preconditions: Sequence[Condition] = ()
    postconditions: Sequence[Condition] = ()
    retries: int = 1
    """Attempts after the first, with feedback, before a human is asked."""
    gate: Gate | None = None
    timeout: float | None = None
    """Seconds one attempt may take."""
    limits: Limits = field(default_factory=Limits)
    """Limits for one visit of this step."""
    edits: bool = False
    """Whether the agent that follows the instructions may change files in the folder of the run."""

    def __post_init__(self) -> None:
        """Makes its lists and mappings read-only: runs and threads share it."""
        _make_read_only(self, "actions", "next", "preconditions", "postconditions")

    @property
    def agent(self) -> str:
        """The agent or role that gets its instructions; empty if no agent is needed."""
        if isinstance(self.handler, HandlerObject):
            return str(self.handler.agent)
        return WORKER if self.actions else ""

    @property
    def instructions(self) -> str:
        """Its title and actions, as the agent gets them."""
        return "\n\n".join([f"# {self.title or self.id}", *map(str, self.actions)])


def _make_read_only(owner: Gate | StepDef, *names: str) -> None:
    for name in names:
        object.__setattr__(owner, name, read_only(getattr(owner, name)))
