"""Updates of a flow's state that several kinds of step make.

Answers of humans, warnings that stopped nothing (a critique that was sent back, a judge
that was overruled), the numbers of each round, and the best version so far: the one with
the fewest and least severe findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.requests import Answer
from signoff.flows.state import FlowState
from signoff.review.critique import Critique
from signoff.review.findings import Ledger, summarize_round
from signoff.review.severity import Severity

LONGEST = 400
"""Characters of a warning; what a critic got wrong can fill pages."""


def keep_answer(
    ctx: StepContext, question_id: str, question: str, answer: Answer
) -> dict[str, Any]:
    """Returns the update that stores a human's answer for the prompts that follow."""
    choice = str(answer.value)
    text = f"{choice}: {answer.text}" if answer.text and answer.text != choice else choice
    entry = {
        "question_id": question_id,
        "question": question,
        "answer": text,
        "by": answer.by,
        "iteration": ctx.iteration,
        "step": ctx.step_id,
    }
    return {"human": Append([entry])}


def keep_warnings(ctx: StepContext, texts: Iterable[str]) -> dict[str, Any]:
    """Returns the update that stores warnings of this step; without any, no update."""
    entries = [
        {"iteration": ctx.iteration, "step": ctx.step_id, "text": shortened(text)} for text in texts
    ]
    return {"remarks": Append(entries)} if entries else {}


def critique_warnings(critiques: Sequence[Critique]) -> list[str]:
    """Returns the engine's notes about critiques, each with its constraint and reviewer."""
    return [f"{c.constraint_id} by {c.reviewer}: {note}" for c in critiques for note in c.notes]


def shortened(text: str) -> str:
    """Returns a text on one line, as much of it as a list can show."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…"


def with_best(ctx: StepContext, state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the update that stores the reviewed artifact, unless an earlier one is better."""
    view = FlowState(state)
    found = [finding.severity for finding in view.ledger.open()]
    score = [found.count(severity) for severity in Severity]
    new = {
        "artifact": view.artifact,
        "iteration": ctx.iteration,
        "score": score,
        "read_against": _read_against(view),
    }
    return {} if view.best is not None and _rank(view.best) < _rank(new) else {"best": new}


def with_round(state: FlowState, ledger: Ledger, iteration: int) -> list[Mapping[str, Any]]:
    """Returns the rounds with the current one replaced by its latest numbers."""
    earlier = [each for each in state.rounds if each["iteration"] != iteration]
    return [*earlier, summarize_round(ledger, iteration)]


def _read_against(view: FlowState) -> int:
    """Returns how many constraints the artifact has been reviewed against."""
    made = view.critiques_by_step.values()
    return len({critique["constraint_id"] for critiques in made for critique in critiques})


def _rank(version: Mapping[str, Any]) -> tuple[int, list[int]]:
    """Orders versions from good to bad; one reviewed against fewer constraints is worse."""
    return -int(version.get("read_against", 0)), list(version["score"])
