"""Explains why a finding did what it did, and what another policy would have made of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.core import events as ev
from signoff.core.fold import evolve
from signoff.core.run_state import RunState
from signoff.errors import UnknownName, UsageError
from signoff.flows.constraint_file import constraint_from_dict
from signoff.flows.model import GenflowConfig
from signoff.flows.reading import read_policy
from signoff.flows.replay import Done, Replay
from signoff.flows.replay import replay as recompute
from signoff.flows.serialize import config_from_json
from signoff.review.behaviors import ResolvedBehavior
from signoff.review.constraint import Constraint
from signoff.review.finding import Finding
from signoff.review.findings import Ledger

LEAST_OF_ID = 4
"""Characters of a finding's id that are enough to name it."""


@dataclass(frozen=True)
class Explanation:
    """Why a finding did what it did."""

    run: str
    finding: Finding
    resolved: ResolvedBehavior
    blocks: bool
    """Whether its severity keeps the artifact from being approved."""
    decision: Mapping[str, Any] | None
    """What a judge decided about it the last time."""
    unverified: bool

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "run": self.run,
            "finding": self.finding.to_json(),
            "behavior": self.resolved.behavior.value,
            "decided_by": self.resolved.level.value,
            "levels": [
                {"level": level.value, "says": said.value if said else None}
                for level, said in self.resolved.by_level
            ],
            "blocks_approval": self.blocks,
            "unverified": self.unverified,
            "decision": dict(self.decision) if self.decision else None,
        }


@dataclass(frozen=True)
class ReviewedRun:
    """A run of a review flow, read back from its journal."""

    name: str
    config: GenflowConfig
    constraints: Mapping[str, Constraint]
    history: tuple[Done, ...]
    """Every step that has worked, with the state before and after it."""

    @property
    def findings(self) -> Mapping[str, Finding]:
        """Every finding of the run by id, in the order they were made."""
        state = self.history[-1].after if self.history else {}
        return Ledger.from_json(state.get("findings")).findings


def reviewed_run(name: str, description: str, events: Iterable[ev.Event]) -> ReviewedRun:
    """Returns a run from what the store has of it; raises `UsageError` if it is no review flow."""
    stored = json.loads(description)
    if stored.get("notation") != "flows":
        raise UsageError(f"run {name!r} is not a review flow; only review flows have a policy")
    source = stored["source"]
    constraints = [constraint_from_dict(each) for each in source["constraints"]]
    return ReviewedRun(
        name,
        config_from_json(source["flow"]),
        {each.id: each for each in constraints},
        tuple(_history(events)),
    )


def explain(run: ReviewedRun, named: str) -> Explanation:
    """Returns which level decided about a finding, and what a judge made of it."""
    finding = _finding(run.findings, run.history, named)
    constraint = run.constraints.get(finding.constraint, Constraint(finding.constraint))
    return Explanation(
        run=run.name,
        finding=finding,
        resolved=run.config.behavior(constraint, finding.severity),
        blocks=finding.severity in run.config.adjudication.block_on,
        decision=_decision(run.history, finding.id),
        unverified=finding.unverified,
    )


def replay(run: ReviewedRun, policy: Path) -> Replay:
    """Recomputes a run's routing under the policy of a file; no model is asked."""
    return recompute(list(run.history), read_policy(policy, run.config), run.constraints)


def _finding(known: Mapping[str, Finding], history: Sequence[Done], named: str) -> Finding:
    """Returns the finding a person means: by its id, by an issue's, or by how its id begins."""
    if named in known:
        return known[named]
    meant = [each for each in _called(history, named) if each in known]
    if not meant and len(named) >= LEAST_OF_ID:
        meant = [each for each in known if each.startswith(named)]
    if not meant:
        raise UnknownName("finding", named, known)
    if len(meant) > 1:
        raise UsageError(f"{named!r} may be any of these findings: {', '.join(meant)}")
    return known[meant[0]]


def _called(history: Sequence[Done], issue: str) -> list[str]:
    """Returns the findings an issue's id stood for in the latest reviews that have it."""
    found: dict[int, dict[str, None]] = {}
    for done in history:
        for critique in (done.after.get("critiques_by_step") or {}).get(done.step, ()):
            named = [
                each.get("finding_id", "") for each in critique["issues"] if each["id"] == issue
            ]
            found.setdefault(critique["iteration"], {}).update(dict.fromkeys(named))
    return next((list(each) for _, each in sorted(found.items(), reverse=True) if each), [])


def _decision(history: Sequence[Done], finding: str) -> Mapping[str, Any] | None:
    """Returns what was last decided about a finding; later judges may not have been shown it."""
    for done in reversed(history):
        for decision in (done.after.get("last_adjudication") or {}).get("decisions", ()):
            if decision.get("finding_id") == finding:
                return dict(decision)
    return None


def _history(events: Iterable[ev.Event]) -> Iterator[Done]:
    state = RunState()
    for event in events:
        step, iteration, before = state.step or "", state.iteration, state.state
        evolve(state, event)
        if isinstance(event, ev.StepFinished):
            yield Done(step, iteration, before, state.state)
    if state.pending is not None:
        yield Done(state.step or "", state.iteration, state.state, state.state_with_pending)
