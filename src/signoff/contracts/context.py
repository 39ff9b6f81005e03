"""What a command and its conditions are given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.contracts.checkpoint import Checkpoint
from signoff.contracts.database import StepDatabase, Tables
from signoff.contracts.expressions import NAMES
from signoff.core.context import StepContext as EngineContext
from signoff.core.effects import CommandResult, Reply
from signoff.core.requests import Answer, Request
from signoff.errors import UsageError


@dataclass(frozen=True)
class StepContext:
    """Where a step stands, what it knows, and the door to everything outside."""

    step: str
    checkpoint: Checkpoint
    params: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    """What the step gave, for its postconditions and its `next`; before, the last step's."""
    item: Any = None
    """The item being worked, where the step fans out."""
    attempt: int = 1
    feedback: str = ""
    """What was wrong with the last attempt, or what a person wrote at a gate."""
    hint: str | None = None
    """Which step the worker thinks should follow."""
    must_hold: Sequence[str] = ()
    """What is checked when the step is done, in words."""
    folder: str | None = None
    """Where programs are run; None runs them in the current folder."""
    view: Tables | None = field(default=None, repr=False, compare=False)
    database: StepDatabase | None = field(default=None, repr=False, compare=False)
    engine: EngineContext | None = field(default=None, repr=False, compare=False)

    @property
    def run_id(self) -> str:
        """The run's name."""
        return self.checkpoint.workflow_run_id

    @property
    def db(self) -> Tables:
        """The workflow's database: to stage work in a command, to look at in a condition."""
        found = self.view or self.database
        if found is None:
            raise UsageError("this workflow names no database")
        return found

    def ask(self, agent: str, prompt: str, **options: Any) -> Awaitable[Reply]:
        """Asks an agent, once: a replay gets the recorded reply."""
        takes = options.pop("takes", ())
        return self._door().ask(agent, prompt, about=self._about(takes), **options)

    def run(self, argv: list[str], **options: Any) -> Awaitable[CommandResult]:
        """Runs a program and returns what it printed."""
        return self._door().command(argv, **{"cwd": self.folder, **options})

    def wait(self, request: Request, **options: Any) -> Awaitable[Answer]:
        """Asks a person."""
        return self._door().wait(request, **options)

    def progress(self, message: str) -> None:
        """Tells whoever watches what is going on."""
        if self.engine is not None:
            self.engine.progress(message)

    def seen_by(self, view: Tables | None, result: Any, hint: str | None) -> StepContext:
        """Returns the context of the conditions that look at a result."""
        return replace(self, view=view, database=None, result=result, hint=hint)

    def values(self, names: Container[str] = NAMES) -> dict[str, Any]:
        """Returns what expressions can name; only `names`, because all of it may be much."""
        known: dict[str, Callable[[], Any]] = {
            "ctx": lambda: {
                "run_id": self.run_id,
                "step": self.step,
                "attempt": self.attempt,
                "item": self.item,
                "feedback": self.feedback,
            },
            "result": lambda: self.result,
            "checkpoint": self.checkpoint.to_json,
            "params": lambda: self.params,
            "hint": lambda: self.hint,
        }
        return {name: value() for name, value in known.items() if name in names}

    def _about(self, takes: Sequence[str]) -> dict[str, Any]:
        """Returns the task in plain values, for whoever works it from outside."""
        said = {
            "step": self.step,
            "item": self.item,
            "attempt": self.attempt,
            "feedback": self.feedback or None,
            "must_hold": list(self.must_hold),
            "takes": list(takes),
        }
        return {name: value for name, value in said.items() if value is not None}

    def _door(self) -> EngineContext:
        if self.engine is None:
            raise UsageError("this context was built by hand and can perform no effects")
        return self.engine
