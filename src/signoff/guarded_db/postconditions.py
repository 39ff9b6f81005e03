"""Checks what must be true after a step's statements, before they are committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from signoff.error_text import describe_error
from signoff.guarded_db.view import ReadOnlyView

CONDITION_SECONDS = 10.0
"""How long all conditions of a step may take together; the database is locked meanwhile."""

_GRACE_SECONDS = 2.0


@dataclass(frozen=True)
class Postcondition:
    """Something that must hold, named as a person would say it."""

    name: str
    holds: Callable[[ReadOnlyView], bool]
    error: str = ""
    """What to say when it does not; empty for its name."""


def failures(
    conditions: Sequence[Postcondition],
    view: ReadOnlyView,
    *,
    seconds: float,
    interrupt: Callable[[], None],
) -> tuple[str, ...]:
    """Returns what does not hold, each with its name; empty when everything does.

    Conditions run on a thread of their own, because nothing else can be left when it hangs.
    """
    if not conditions:
        return ()
    findings: list[str] = []
    checked: list[str] = []

    def check_all() -> None:
        for condition in conditions:
            findings.extend(found(condition, view))
            checked.append(condition.name)

    thread = threading.Thread(target=check_all, name="signoff-postconditions", daemon=True)
    thread.start()
    thread.join(seconds)
    if not thread.is_alive():
        return tuple(findings)
    view.close()
    stuck = conditions[min(len(checked), len(conditions) - 1)].name
    known = tuple(findings)
    interrupt()
    thread.join(_GRACE_SECONDS)
    return (*known, f"{stuck}: did not come to an end within {seconds:g} seconds")


def found(condition: Postcondition, view: ReadOnlyView) -> tuple[str, ...]:
    """Returns what is wrong about one condition; empty when it holds."""
    try:
        held = condition.holds(view)
    except Exception as error:  # noqa: BLE001 - whatever an author's condition raises, it does not hold
        raised = describe_error(error)
        return (f"{condition.name}: raised {raised}",)
    # Not truthiness: a condition that returns a coroutine or a row by mistake would always hold.
    if held is True:
        return ()
    if held is False and condition.error:
        return (condition.error,)
    shown = "does not hold" if held is False else f"returned {held!r:.80} instead of True or False"
    return (f"{condition.name}: {shown}",)
