"""The types of a contract workflow: steps, their conditions, and what follows each step.

A step is done when its postconditions hold. The engine checks them; a worker's word for it
does not count.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from signoff.agents.kinds import DEFAULT_AGENT
from signoff.core.spend import Limits

if TYPE_CHECKING:
    from signoff.contracts.work import StepContext

Check = Callable[["StepContext"], bool | Awaitable[bool]]
Command = Callable[["StepContext"], Any] | Sequence[str] | str
"""A Python function, a program with its arguments, or the name of a registered function."""

MAX_RETRIES = 1
"""Retries of a step or an item that does not meet its conditions, before a human is asked."""


@dataclass(frozen=True)
class Condition:
    """Something that must be true before or after a step."""

    name: str
    check: Check | str
    """A function of the context, the name of one, or an expression over ctx, result, ..."""
    error: str = ""
    """The message for the worker or the human if it is false."""
    query: str = ""
    """A SELECT; the check is then an expression over its `rows`, or over the `value` it returns."""
    values: Mapping[str, str] = field(default_factory=dict)
    """An expression for each `:name` in the query."""
    where: str = field(default="", compare=False, repr=False)
    """The file and the line, for errors in the expression."""

    @property
    def message(self) -> str:
        """The error message if it is false."""
        return self.error or f"{self.name} does not hold"

    @property
    def description(self) -> str:
        """What a worker is shown before it starts."""
        is_named = isinstance(self.check, str) and self.check != self.name
        text = f"{self.name} ({self.check})" if is_named else self.name
        text = f"{text}, for: {self.query}" if self.query else text
        return f"{text}; otherwise: {self.error}" if self.error else text


def as_condition(value: Any) -> Any:
    """Returns a bare function or expression as a condition, and anything else unchanged."""
    if isinstance(value, str):
        return Condition(value, value)
    if callable(value):
        return Condition(getattr(value, "__name__", type(value).__name__), value)
    return value


@dataclass(frozen=True)
class ConditionalNext:
    """A branch: which step follows depends on the result."""

    condition: Check | str
    on_true: str
    on_false: str
    max_iterations: int | None = None
    """How often the branch that loops may be taken before a human decides."""
    where: str = field(default="", compare=False, repr=False)
    """The file and the line, for errors in the expression."""


@dataclass(frozen=True)
class GateOption:
    """One choice at a gate."""

    label: str
    next_step: str | None = None
    """None ends the workflow."""
    requires_input: bool = False
    ends: Literal["completed", "rejected"] | None = None
    """How it ends the workflow; without this, a label that leads nowhere ends it as rejected."""


@dataclass(frozen=True)
class HumanGate:
    """A decision by a human about what follows a step."""

    prompt: str
    options: Sequence[GateOption]
    context: Sequence[str] = ()
    """Dotted names of the values that are shown; the decision is bound to these values."""
    presence: bool = False
    """Whether it needs the signature of a passkey, except to reject."""


@dataclass(frozen=True)
class WorkflowStep:
    """One step: its work, its conditions, and what follows."""

    name: str
    command: Command | None = None
    """The command; None for a step that only asks an agent, or only waits at its gate."""
    prompt: str = ""
    """The prompt for an agent; `{{name}}` is replaced by a checkpoint value or a parameter."""
    agent: str = DEFAULT_AGENT
    model: str | None = None
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the agent's result."""
    preconditions: Sequence[Any] = ()
    """Conditions; a bare function or expression is one too."""
    postconditions: Sequence[Any] = ()
    """Conditions in the same forms."""
    parallel: bool = False
    """Whether it runs together with the steps next to it that are parallel too."""
    parallel_key: str | None = None
    """The name of a list: the step runs once for every item of it."""
    human_gate: HumanGate | None = None
    next: str | ConditionalNext | None = None
    """None ends the workflow."""
    timeout: float | None = None
    title: str = ""

    def __post_init__(self) -> None:
        """Turns bare functions and expressions into conditions."""
        # The class is frozen, so that a definition cannot change while runs of it are under way.
        # This is the only moment at which its fields may be set.
        for key in ("preconditions", "postconditions"):
            values = getattr(self, key)
            if isinstance(values, list | tuple):
                object.__setattr__(self, key, tuple(map(as_condition, values)))


@dataclass(frozen=True)
class Database:
    """The user's own database, which the steps of a workflow read and change."""

    url: str
    """A SQLite file, or a `postgresql://` address."""
    backup: bool | None = None
    """Whether a backup is taken before a run first changes it; None means of a SQLite file only."""
    keep: int = 10
    """How many backups are kept."""
    backups: str | None = None
    """The folder of the backups; None means next to the file."""


@dataclass(frozen=True)
class WorkflowDefinition:
    """A whole contract workflow."""

    type: str
    steps: Sequence[WorkflowStep]
    name: str = ""
    initial_step: str | None = None
    """The step to start with; None means the first."""
    description: str = ""
    commands: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Functions that steps can use as their command, by name."""
    database: Database | None = None
    folder: str | None = None
    """The folder in which programs run; None means the current one."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The agent for each role, unless the settings name another."""
    limits: Limits = field(default_factory=Limits)
    params: Sequence[str] | None = None
    """The parameters that a run accepts; None finds them in prompts and expressions."""


@dataclass(frozen=True)
class StepResult:
    """A step that is done, and its result."""

    step: str
    completed_at: str
    result: Any = None


@dataclass(frozen=True)
class ParallelItemResult:
    """The status of one item of a fan-out."""

    status: Literal["pending", "completed", "failed"]
    result: Any = None
    error: str | None = None
    retry_count: int = 0
    """How many attempts have failed."""


@dataclass(frozen=True)
class PendingRetry:
    """An attempt that follows a failed one."""

    step: str
    error: str
    """What was wrong with the attempt before, and what a human wrote about it."""
    attempt: int
    """The number of the attempt that is under way; the first one is 1."""


@dataclass(frozen=True)
class StepInput:
    """What a program gets on its standard input, as JSON."""

    run_id: str
    step: str
    checkpoint: Mapping[str, Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    item: Any = None
    retry_context: Mapping[str, Any] | None = None
    """The error of the last attempt, and the number of this one."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values, without what is None."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class StepOutput:
    """What a step returns if it returns more than its result."""

    success: bool = True
    result: Any = None
    error: str | None = None
    next_step_hint: str | None = None
    statements: Sequence[Sequence[Any]] = ()
    """Statements for the database, each `[sql]` or `[sql, params]`."""
