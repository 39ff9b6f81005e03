"""Read access to the database, and the postconditions of a step, which get nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from signoff.error_text import describe_error, unmet
from signoff.errors import AuthorError, NotAllowed, UsageError
from signoff.guarded_db.ports import Row
from signoff.guarded_db.verdict import Params

CONDITION_SECONDS = 10.0
"""Time for all conditions of a step together; the database is locked meanwhile."""

_GRACE_SECONDS = 2.0


Reader: TypeAlias = Callable[[str, Params], tuple[Row, ...]]


class Tables:
    """The database as the conditions of a step and its command see it."""

    def __init__(self, reader: Reader) -> None:
        self._reader: Reader | None = reader

    def query(self, sql: str, params: Params = ()) -> tuple[Row, ...]:
        """Returns the rows of a SELECT, each by column name."""
        if self._reader is None:
            raise UsageError("this view of the database is closed: its transaction has ended")
        return self._reader(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Returns the first row, or None if there is none."""
        rows = self.query(sql, params)
        return rows[0] if rows else None

    def value(self, sql: str, params: Params = ()) -> Any:
        """Returns the first column of the first row, or None if there is no row."""
        row = self.one(sql, params)
        return next(iter(row.values())) if row else None

    def exists(self, sql: str, params: Params = ()) -> bool:
        """Returns whether there is any row."""
        return self.one(sql, params) is not None

    def stage(self, sql: str, params: Params = ()) -> None:  # noqa: ARG002  # the same call as a step's
        """Refuses: only a step's command stages changes, and its `Tables` takes them."""
        raise NotAllowed("conditions can only read; stage changes in the step's command")

    def close(self) -> None:
        """Ends the view, so that an abandoned condition cannot read later states."""
        self._reader = None


@dataclass(frozen=True)
class Postcondition:
    """A condition that must hold, with a name for messages."""

    name: str
    holds: Callable[[Tables], bool]
    error: str = ""
    """The message if it does not hold; empty for a message with its name."""
    quick: bool = False
    """Whether it takes no noticeable time, cannot hang, and reads nothing from the database."""


def failures(
    conditions: Sequence[Postcondition],
    view: Tables,
    *,
    seconds: float,
    interrupt: Callable[[], None],
) -> tuple[str, ...]:
    """Returns a message for each condition that does not hold; raises an `AuthorError` of one.

    Conditions run in a thread, because a function that hangs can only be abandoned. Those that
    cannot hang do without: handing them over takes longer than they do.
    """
    if all(condition.quick for condition in conditions):
        return tuple(message for each in conditions for message in _messages(each, view))
    messages: list[str] = []
    checked: list[str] = []
    wrong: list[AuthorError] = []
    done = threading.Event()

    def check_all() -> None:
        try:
            for condition in conditions:
                messages.extend(_messages(condition, view))
                checked.append(condition.name)
        except AuthorError as error:
            wrong.append(error)
        except BaseException as error:  # noqa: BLE001 - such as `sys.exit()`: it does not hold
            messages.append(_explained(conditions[len(checked)], f"raised {describe_error(error)}"))
        finally:
            done.set()

    threading.Thread(target=check_all, name="signoff-conditions", daemon=True).start()
    if done.wait(seconds):
        if wrong:
            raise wrong[0]
        return tuple(messages)
    view.close()
    stuck = conditions[min(len(checked), len(conditions) - 1)]
    # Copied before the interrupt, which makes the stuck condition fail as well.
    complete = tuple(messages)
    interrupt()
    done.wait(_GRACE_SECONDS)
    return (*complete, _explained(stuck, f"took more than {seconds:g} seconds"))


def _messages(condition: Postcondition, view: Tables) -> tuple[str, ...]:
    """Returns what is wrong about one condition; empty if it holds."""
    try:
        value = condition.holds(view)
    except Exception as error:  # noqa: BLE001  # whatever it raises, it does not hold
        return (unmet(condition.name, condition.error, error),)
    # Not truthiness: a condition that returns a coroutine or a row by mistake would always hold.
    if value is True:
        return ()
    if value is not False:
        what = f"returned {value!r:.80} instead of True or False"
        return (_explained(condition, what),)
    return (condition.error or f"{condition.name}: does not hold",)


def _explained(condition: Postcondition, what: str) -> str:
    """Returns the author's message first, because the worker acts on it, then what happened."""
    if not condition.error:
        return f"{condition.name}: {what}"
    return f"{condition.error} ({condition.name} {what})"
