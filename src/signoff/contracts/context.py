"""The context of a step, which its command and its conditions get."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from signoff.contracts.checkpoint import Checkpoint, expression_view
from signoff.contracts.expressions import CTX_NAMES, Expression
from signoff.core.context import StepContext as EngineContext
from signoff.core.effects import CommandResult, Reply
from signoff.core.errors import UsageError
from signoff.core.requests import Answer, Request

if TYPE_CHECKING:
    from signoff.contracts.database import StepSession, Tables


@dataclass(frozen=True)
class StepContext:
    """What a step knows about the run, and its access to agents, programs and the database."""

    step: str
    checkpoint: Checkpoint
    params: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    """The step's result, for its postconditions and its `next`; before it, the last step's."""
    item: Any = None
    """The current item, if the step fans out."""
    attempt: int = 1
    feedback: str = ""
    """The error of the last attempt, or what a human wrote at a gate."""
    hint: str | None = None
    """The next step that the worker suggests."""
    must_hold: Sequence[str] = ()
    """Descriptions of the postconditions."""
    folder: str | None = None
    """The folder in which programs run; None means the current one."""
    view: Tables | None = field(default=None, repr=False, compare=False)
    database: StepSession | None = field(default=None, repr=False, compare=False)
    engine: EngineContext | None = field(default=None, repr=False, compare=False)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.checkpoint.workflow_run_id

    @property
    def db(self) -> Tables:
        """The workflow's database; commands can stage changes, conditions can only read."""
        found = self.view or self.database
        if found is None:
            raise UsageError("this workflow has no database")
        return found

    def ask(self, agent: str, prompt: str, **options: Any) -> Awaitable[Reply]:
        """Asks an agent; a replay gets the recorded reply."""
        # Workers outside of this process see from this which options of `submit` count for the
        # step.
        takes = options.pop("takes", ())
        return self._engine().ask(agent, prompt, about=self._about(takes), **options)

    def run(self, argv: list[str], **options: Any) -> Awaitable[CommandResult]:
        """Runs a program and returns what it printed."""
        return self._engine().command(argv, **{"cwd": self.folder, **options})

    def wait(self, request: Request, **options: Any) -> Awaitable[Answer]:
        """Asks a human."""
        return self._engine().wait(request, **options)

    def progress(self, message: str) -> None:
        """Shows a message to the user while the step runs."""
        if self.engine is not None:
            self.engine.progress(message)

    def seen_by(self, view: Tables | None) -> StepContext:
        """Returns the context for conditions, which cannot change the database."""
        # Without the step's own database, a condition that stages a change is refused by the view.
        return replace(self, view=view, database=None)

    def with_result(
        self, result: Any, hint: str | None, others: Mapping[str, Any] | None = None
    ) -> StepContext:
        """Returns the context for conditions about a result.

        `others` are the results of steps that were done together with this one.
        """
        results = {**(others or {}), self.step: result}
        checkpoint = replace(self.checkpoint, own_results=results)
        return replace(self, result=result, hint=hint, checkpoint=checkpoint)

    def values(self, expression: Expression) -> dict[str, Any]:
        """Returns the values of the names that an expression uses; a checkpoint may be large."""
        known: dict[str, Callable[[], Any]] = {
            "ctx": lambda: self._fields(expression),
            "result": lambda: self.result,
            "results": lambda: self.checkpoint.results,
            "checkpoint": lambda: expression_view(self.checkpoint, expression.checkpoint_names),
            "params": lambda: self.params,
            "hint": lambda: self.hint,
        }
        return {name: value() for name, value in known.items() if name in expression.names}

    def _fields(self, expression: Expression) -> dict[str, Any]:
        values: dict[str, Any] = {}
        # Both spellings are filled in, because authors use either: `run_id` and `runId`.
        for name in expression.ctx_names:
            if name == "checkpoint":
                values[name] = expression_view(self.checkpoint, expression.checkpoint_names)
            elif name in CTX_NAMES:
                values[name] = values[CTX_NAMES[name]] = getattr(self, name)
        return values

    def _about(self, takes: Sequence[str]) -> dict[str, Any]:
        """Returns the task as JSON values, for workers outside this process."""
        task = {
            "step": self.step,
            "item": self.item,
            "attempt": self.attempt,
            "feedback": self.feedback or None,
            "must_hold": list(self.must_hold),
            "takes": list(takes),
        }
        return {name: value for name, value in task.items() if value is not None}

    def _engine(self) -> EngineContext:
        if self.engine is None:
            raise UsageError("this context has no engine, so it can perform no effects")
        return self.engine
