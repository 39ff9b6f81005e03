"""What is worth knowing about how a run went, though it stopped nothing.

A critique that was sent back, a judge that was overruled, an edit that changed nothing:
each is kept in the state with its iteration and its step, for `show` and `status.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.review.critique import Critique

LONGEST = 400
"""Characters of a remark; what a critic got wrong can fill pages."""


def remarked(ctx: StepContext, texts: Iterable[str]) -> dict[str, Any]:
    """Returns the update that keeps remarks of this step; none is no update."""
    said = [
        {"iteration": ctx.iteration, "step": ctx.step_id, "text": shortened(text)} for text in texts
    ]
    return {"remarks": Append(said)} if said else {}


def of_critiques(critiques: Sequence[Critique]) -> list[str]:
    """Returns what the engine noted about critiques, with whose they are."""
    return [f"{c.constraint_id} by {c.reviewer}: {note}" for c in critiques for note in c.notes]


def shortened(text: str) -> str:
    """Returns a text on one line, as much of it as a list can show."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…"
