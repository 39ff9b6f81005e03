"""Checks the postconditions of a step before its statements are committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from signoff.error_text import describe_error, unmet
from signoff.errors import AuthorError
from signoff.guarded_db.view import ReadOnlyView
from signoff.idle_threads import in_idle_thread

CONDITION_SECONDS = 10.0
"""Time for all conditions of a step together; the database is locked meanwhile."""

_GRACE_SECONDS = 2.0


@dataclass(frozen=True)
class Postcondition:
    """A condition that must hold, with a name for messages."""

    name: str
    holds: Callable[[ReadOnlyView], bool]
    error: str = ""
    """The message if it does not hold; empty for a message with its name."""
    quick: bool = False
    """Whether it takes no noticeable time and cannot hang."""


def failures(
    conditions: Sequence[Postcondition],
    view: ReadOnlyView,
    *,
    seconds: float,
    interrupt: Callable[[], None],
) -> tuple[str, ...]:
    """Returns a message for each condition that does not hold; raises an `AuthorError` of one.

    Conditions run in a thread, because a function that hangs can only be abandoned. Those that
    cannot hang do without, because handing them over takes longer than they do.
    """
    if all(condition.quick for condition in conditions):
        return tuple(message for each in conditions for message in _messages(each, view))
    messages: list[str] = []
    checked: list[str] = []
    wrong: list[AuthorError] = []
    # A bare lock: an event takes as long to make and to wait for as handing the call over.
    running = threading.Lock()
    running.acquire()

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
            running.release()

    in_idle_thread(check_all)
    if running.acquire(timeout=seconds):
        if wrong:
            raise wrong[0]
        return tuple(messages)
    view.close()
    stuck = conditions[min(len(checked), len(conditions) - 1)]
    # Copied before the interrupt, which makes the stuck condition fail as well.
    complete = tuple(messages)
    interrupt()
    running.acquire(timeout=_GRACE_SECONDS)
    return (*complete, _explained(stuck, f"took more than {seconds:g} seconds"))


def _messages(condition: Postcondition, view: ReadOnlyView) -> tuple[str, ...]:
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
