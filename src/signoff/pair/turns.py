"""What a turn came to: which candidate counts, what the writer gets, what is kept and reported.

Pure functions of what writers and reviewers replied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from signoff.core.words import VERDICT_WORDS
from signoff.notation import RunReport

TurnRecord = dict[str, Any]
"""One turn in a run's state: turn, text, approved, feedback, score, too_long, at, candidates."""

CHECKS = "checks"
"""The name under which built-in checks review."""


def decided_turn(
    number: int,
    candidates: Sequence[Mapping[str, Any]],
    reviews: Sequence[Sequence[Mapping[str, Any]]],
    at: float,
) -> TurnRecord:
    """Returns the record of a turn, with the candidate that counts and all others."""
    judged = [_judged(*each) for each in zip(candidates, reviews, strict=True)]
    chosen = choose(judged)
    kept = judged[chosen]
    return {
        "turn": number,
        "text": kept["text"],
        "approved": kept["approved"],
        "feedback": None if kept["approved"] else kept["feedback"],
        "score": kept["score"],
        "too_long": kept["too_long"],
        "at": at,
        "chosen": chosen,
        "candidates": judged,
    }


def choose(candidates: Sequence[Mapping[str, Any]]) -> int:
    """Returns the place of an approved candidate, else of the best score, else of the first."""
    places = range(len(candidates))
    approved = [place for place in places if candidates[place]["approved"]]
    among = approved or places
    # `max` returns the first of several that are equally good.
    return max(among, key=lambda place: _points(candidates[place]))


def final_turn(turns: Sequence[Mapping[str, Any]], keep: str) -> Mapping[str, Any]:
    """Returns the turn whose text is the result: the last one, or the one with the best score."""
    last = turns[-1]
    if last["approved"] or keep == "last":
        return last
    return max(turns, key=lambda turn: (_points(turn), turn["turn"]))


def turn_lines(turn: Mapping[str, Any], max_turns: int) -> Iterator[str]:
    """Yields a turn as lines for humans: the text, the verdict and the feedback."""
    several = len(turn["candidates"])
    chosen = f", candidate {turn['chosen'] + 1} of {several}" if several > 1 else ""
    yield f"turn {turn['turn']} of {max_turns}{chosen}: {turn['text']}"
    score = f", score {turn['score']:g}" if turn["score"] is not None else ""
    long = ", longer than allowed" if turn["too_long"] else ""
    yield f"{VERDICT_WORDS['APPROVED' if turn['approved'] else 'REWRITE']}{score}{long}"
    if turn["feedback"]:
        yield f"feedback: {turn['feedback']}"


def _judged(candidate: Mapping[str, Any], reviews: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    scores = [each["score"] for each in reviews if each["score"] is not None]
    approved = bool(reviews) and all(each["approved"] for each in reviews)
    return {
        **candidate,
        "approved": approved,
        "feedback": "" if approved else _feedback(reviews),
        "score": round(sum(scores) / len(scores), 2) if scores else None,
        "reviews": [dict(each) for each in reviews],
    }


def _feedback(reviews: Sequence[Mapping[str, Any]]) -> str:
    """Returns what has to change; with several reviewers, each remark with its author."""
    remarks = [(each["reviewer"], each["feedback"]) for each in reviews if not each["approved"]]
    if len(reviews) == 1:
        return str(remarks[0][1])
    return "\n".join(f"{name}: {text}" for name, text in remarks)


def _points(judged: Mapping[str, Any]) -> float:
    return -1.0 if judged["score"] is None else float(judged["score"])


def report(state: Mapping[str, Any], _definition: Mapping[str, Any]) -> RunReport:
    """Returns the report on a pair from the state of its run."""
    turns = list(state.get("turns", ()))
    final = state.get("final")
    names = ("task", "preset", "model_name", "max_turns", "final_turn")
    facts = {
        "turns": turns,
        "final": final,
        **{name: state[name] for name in names if name in state},
    }
    summary = f"{state.get('preset', 'text')}: {final}" if final else ""
    lines = [list(turn_lines(turn, state["max_turns"])) for turn in turns]
    details = "\n".join("\n  ".join(each) for each in lines)
    return RunReport(summary, details, lambda: {"pair": facts}, final or "")
