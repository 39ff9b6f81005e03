"""Updates of a flow's state that several kinds of step make.

Answers of humans, warnings that stopped nothing (a critique that was sent back, a judge
that was overruled), the numbers of each round, and the best version so far: the one with
the fewest and least severe findings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.one_line import one_line
from signoff.core.requests import Answer
from signoff.core.severity import Severity
from signoff.flows.state import FlowState
from signoff.review.critique import Critique
from signoff.review.finding import Finding, blocking_first, describe_equal, group_equal
from signoff.review.findings import Ledger, summarize_round

MOST_LISTED = 20
"""Findings that a question lists."""
LONGEST = 400
"""Characters of a warning; the problems of one critique can fill pages."""
_STILL_OPEN = "; still open:"


def keep_answer(
    ctx: StepContext, question_id: str, question: str, answer: Answer
) -> dict[str, Any]:
    """Returns the update that stores a human's answer for the prompts that follow."""
    choice = str(answer.value)
    # Agents read this text as the decision of a human, so it has the choice and the words.
    text = f"{choice}: {answer.text}" if answer.text and answer.text != choice else choice
    entry = {
        "question_id": question_id,
        "question": question,
        "answer": text,
        "by": answer.by,
        "round": ctx.iteration,
        "step": ctx.step_id,
    }
    return {"human": Append([entry])}


def keep_warnings(ctx: StepContext, texts: Iterable[str]) -> dict[str, Any]:
    """Returns the update that stores warnings of this step; without any, no update."""
    entries = [
        {"round": ctx.iteration, "step": ctx.step_id, "text": shortened(text)} for text in texts
    ]
    return {"remarks": Append(entries)} if entries else {}


def report_warnings(ctx: StepContext, texts: Iterable[str]) -> dict[str, Any]:
    """Shows warnings while the run is under way; returns the update that stores them."""
    found = list(texts)
    for text in found:
        ctx.progress(shortened(text))
    return keep_warnings(ctx, found)


def critique_warnings(critiques: Sequence[Critique]) -> list[str]:
    """Returns the engine's notes about critiques, each with its constraint and reviewer."""
    return [f"{c.constraint_id} by {c.reviewer}: {note}" for c in critiques for note in c.notes]


def at_limit_reason(why: str, ledger: Ledger, block_on: Collection[Severity]) -> str:
    """Returns why a run needs a decision at its limit, with the findings that are still open."""
    groups = group_equal(ledger.open(block_on))
    lines = [
        f"- [{each.severity}] {each.id} ({each.constraint}): {shortened(each.finding)}"
        + (f" ({describe_equal(group)})" if len(group) > 1 else "")
        for group in groups[:MOST_LISTED]
        for each in group[:1]
    ]
    left = sum(map(len, groups[MOST_LISTED:]))
    lines += [f"- and {left:,} more"] if left else []
    return "\n".join([f"{why}{_STILL_OPEN}", *lines]) if lines else why


def without_findings(reason: str) -> str:
    """Returns what `at_limit_reason` got, for a text that lists the findings elsewhere."""
    return reason.partition(f"{_STILL_OPEN}\n")[0]


def shortened(text: str, longest: int = LONGEST) -> str:
    """Returns a text on one line, cut to a length that fits into a list."""
    return one_line(text, longest)


def with_best(ctx: StepContext, state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the update that stores the reviewed artifact, unless an earlier one is better."""
    view = FlowState(state)
    best = best_version(view, ctx.iteration)
    return {} if best is view.best else {"best": best}


def best_version(view: FlowState, iteration: int) -> Mapping[str, Any]:
    """Returns the reviewed artifact with its findings, or an earlier one that is better."""
    findings = view.ledger.open()
    critiques = [each for stored in view.critiques_by_step.values() for each in stored]
    skipped = [name for names in view.not_repeated.values() for name in names]
    new = {
        **({"files": dict(view.files)} if view.has_files else {"artifact": view.artifact}),
        "round": iteration,
        "score": score_of(findings),
        "read_against": len({*skipped, *(each["constraint_id"] for each in critiques)}),
        "findings": [finding.to_json() for finding in findings],
    }
    best = view.best
    # About the same text, the latest reading counts: it may have found what others overlooked.
    if best is None or all(best.get(key) == new.get(key) for key in ("files", "artifact")):
        return new
    # Of two versions that are equally good the later one counts: it has the last fixes.
    return best if _rank(best) < _rank(new) else new


def score_of(findings: Sequence[Finding]) -> list[int]:
    """Returns how many findings of each severity there are, the worst first."""
    severities = [finding.severity for finding in findings]
    return [severities.count(severity) for severity in Severity]


def findings_of(
    best: Mapping[str, Any] | None, ledger: Ledger, block_on: Collection[Severity]
) -> list[Finding]:
    """Returns what is open in the best version; it may be older than what the ledger is about."""
    if best is None:
        return ledger.open(block_on)
    return sorted(map(Finding.from_json, best["findings"]), key=blocking_first(block_on))


def with_round(state: FlowState, ledger: Ledger, iteration: int) -> list[Mapping[str, Any]]:
    """Returns the rounds with the current one replaced by its latest numbers."""
    earlier = [each for each in state.rounds if each["round"] != iteration]
    return [*earlier, summarize_round(ledger, iteration)]


def _rank(version: Mapping[str, Any]) -> tuple[int, list[int]]:
    """Orders versions from good to bad; one reviewed against fewer constraints is worse."""
    return -int(version["read_against"]), list(version["score"])
