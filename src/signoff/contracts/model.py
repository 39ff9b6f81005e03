"""What a contract workflow says: steps with conditions before and after, and where each leads.

A step is done when its postconditions hold, checked by the engine; never because somebody
says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from signoff.agents.kinds import DEFAULT_AGENT
from signoff.core.spend import Limits

if TYPE_CHECKING:
    from signoff.contracts.context import StepContext

Check = Callable[["StepContext"], bool | Awaitable[bool]]
Command = Callable[["StepContext"], Any] | Sequence[str] | str
"""A Python function, a program with its arguments, or the name of a registered function."""

MAX_RETRIES = 1
"""How often a step that fell short is tried again before a person is asked."""


@dataclass(frozen=True)
class Condition:
    """Something that must be true before or after a step."""

    name: str
    check: Check | str
    """A function of the context, the name of one, or an expression over ctx, result, ..."""
    error: str = ""
    """What the worker or the person is told when it is false."""

    @property
    def words(self) -> str:
        """What to say when it is false."""
        return self.error or f"{self.name} does not hold"

    @property
    def told(self) -> str:
        """What to say to whoever has to meet it."""
        says_more = isinstance(self.check, str) and self.check != self.name
        what = f"{self.name} ({self.check})" if says_more else self.name
        return f"{what}; otherwise: {self.error}" if self.error else what


def as_condition(given: Any) -> Any:
    """Returns a bare function or a bare text as a condition of that name; all else unchanged."""
    if isinstance(given, str):
        return Condition(given, given)
    if callable(given):
        return Condition(getattr(given, "__name__", type(given).__name__), given)
    return given


@dataclass(frozen=True)
class ConditionalNext:
    """Leads one way or another, by what the step gave."""

    condition: Check | str
    on_true: str
    on_false: str
    max_iterations: int | None = None
    """How often the branch that loops may be taken before a person decides."""


@dataclass(frozen=True)
class GateOption:
    """One way on from a gate."""

    label: str
    next_step: str | None = None
    """None ends the workflow."""
    requires_input: bool = False
    ends: Literal["completed", "rejected"] | None = None
    """How it ends the workflow; None judges by the label."""


@dataclass(frozen=True)
class HumanGate:
    """Where a person decides how to go on."""

    prompt: str
    options: Sequence[GateOption]
    context: Sequence[str] = ()
    """Names of what the person is shown, dotted; the decision is bound to their values."""


@dataclass(frozen=True)
class WorkflowStep:
    """One step: what is done, what must hold, and what follows."""

    name: str
    command: Command | None = None
    """What is run; None for a step that only asks an agent, or only waits at its gate."""
    prompt: str = ""
    """What an agent is asked; `{{name}}` stands for a value of the checkpoint or a parameter."""
    agent: str = DEFAULT_AGENT
    model: str | None = None
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the agent's result."""
    preconditions: Sequence[Any] = ()
    """Conditions; a bare function or a bare text is taken for one."""
    postconditions: Sequence[Any] = ()
    """Conditions, as before."""
    parallel: bool = False
    """Whether it runs together with its neighbours that say so too."""
    parallel_key: str | None = None
    """The name of a list: the step is worked once for every item of it."""
    human_gate: HumanGate | None = None
    next: str | ConditionalNext | None = None
    """None ends the workflow."""
    timeout: float | None = None
    title: str = ""

    def __post_init__(self) -> None:
        """Makes conditions of bare functions and texts."""
        for key in ("preconditions", "postconditions"):
            given = getattr(self, key)
            if isinstance(given, list | tuple):
                object.__setattr__(self, key, tuple(as_condition(each) for each in given))


@dataclass(frozen=True)
class Database:
    """The user's own database, as far as a workflow works on it."""

    url: str
    """A SQLite file, or a `postgresql://` address."""
    backup: bool = True
    """Whether a copy is taken before a run first changes it."""
    keep: int = 10
    """How many copies are kept."""
    backups: str | None = None
    """The folder of the copies; None keeps them beside a SQLite file."""


@dataclass(frozen=True)
class WorkflowDefinition:
    """A whole contract workflow."""

    type: str
    steps: Sequence[WorkflowStep]
    name: str = ""
    initial_step: str | None = None
    """None begins with the first."""
    description: str = ""
    commands: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Functions that steps name as their command."""
    database: Database | None = None
    folder: str | None = None
    """Where programs are run; None runs them in the current folder."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Which agent plays a role, where the settings say nothing."""
    limits: Limits = field(default_factory=Limits)
    params: Sequence[str] | None = None
    """The parameters a run may be started with; None finds them in prompts and expressions."""


@dataclass(frozen=True)
class StepResult:
    """A step that is done, and what it gave."""

    step: str
    completed_at: str
    result: Any = None


@dataclass(frozen=True)
class ParallelItemResult:
    """How one item of a fan-out stands."""

    status: Literal["pending", "completed", "failed"]
    result: Any = None
    error: str | None = None
    retry_count: int = 0


@dataclass(frozen=True)
class StepInput:
    """What a program is given on its standard input, as JSON."""

    run_id: str
    step: str
    checkpoint: Mapping[str, Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    item: Any = None
    retry_context: Mapping[str, Any] | None = None
    """What was wrong with the last attempt, and which attempt this is."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is written to the program."""
        said = {
            "run_id": self.run_id,
            "step": self.step,
            "checkpoint": dict(self.checkpoint),
            "params": dict(self.params),
            "item": self.item,
            "retry_context": dict(self.retry_context) if self.retry_context else None,
        }
        return {key: value for key, value in said.items() if value is not None}


@dataclass(frozen=True)
class StepOutput:
    """What a step gives back, where it says more than its result."""

    success: bool = True
    result: Any = None
    error: str | None = None
    next_step_hint: str | None = None
    statements: Sequence[Sequence[Any]] = ()
    """Statements for the database, each `[sql]` or `[sql, params]`."""
