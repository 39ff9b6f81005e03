"""Explains the behavior of a finding, and what another policy would have decided in a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.core import events as ev
from signoff.core.fold import evolve
from signoff.core.run_state import RunState
from signoff.core.words import FindingStatus
from signoff.errors import UnknownName, UsageError
from signoff.flows.constraint_file import constraint_from_dict
from signoff.flows.model import GenflowConfig
from signoff.flows.reading import read_policy
from signoff.flows.replay import RecordedVisit, Replay
from signoff.flows.replay import replay as recompute
from signoff.flows.serialize import config_from_json
from signoff.review.constraint import Constraint, ResolvedBehavior
from signoff.review.finding import Finding
from signoff.review.findings import Ledger

SHORTEST_PREFIX = 4
"""Characters of a finding's id that are enough to name it."""


@dataclass(frozen=True)
class Explanation:
    """Why a finding has its behavior."""

    run: str
    finding: Finding
    resolved: ResolvedBehavior
    blocks: bool
    """Whether its severity blocks the approval of the artifact."""
    decision: Mapping[str, Any] | None
    """The last decision of a judge about it."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "run": self.run,
            "finding": self.finding.facts(),
            "behavior": self.resolved.behavior.value,
            "decided_by": self.resolved.level.value,
            "levels": [
                {"level": level.value, "says": behavior.value if behavior else None}
                for level, behavior in self.resolved.by_level
            ],
            "blocks": self.blocks,
            "unverified": self.finding.unverified,
            "decision": dict(self.decision) if self.decision else None,
        }


@dataclass(frozen=True)
class ReviewedRun:
    """A run of a review flow, read from its journal."""

    name: str
    config: GenflowConfig
    constraints: Mapping[str, Constraint]
    history: tuple[RecordedVisit, ...]
    """Every finished visit of a step."""

    @property
    def findings(self) -> Mapping[str, Finding]:
        """Every finding of the run by id, in the order of discovery."""
        state = self.history[-1].after if self.history else {}
        return Ledger.from_json(state.get("findings")).findings


def reviewed_run(name: str, description: str, events: Iterable[ev.Event]) -> ReviewedRun:
    """Returns a run from its stored definition and events; raises `UsageError` for other runs."""
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


def explain(run: ReviewedRun, name: str) -> Explanation:
    """Returns which level set the behavior of a finding, and what a judge decided about it."""
    finding = _finding(run.findings, run.history, name)
    constraint = run.constraints.get(finding.constraint, Constraint(finding.constraint))
    return Explanation(
        run=run.name,
        finding=finding,
        resolved=run.config.behavior(constraint, finding.severity),
        blocks=finding.status is FindingStatus.OPEN
        and finding.severity in run.config.adjudication.block_on,
        decision=_decision(run.history, finding.id),
    )


def replay(run: ReviewedRun, policy: Path) -> Replay:
    """Recomputes the decisions of a run under the policy in a file; no agent is asked."""
    return recompute(list(run.history), read_policy(policy, run.config), run.constraints)


def _finding(known: Mapping[str, Finding], history: Sequence[RecordedVisit], name: str) -> Finding:
    """Returns a finding by its id, by the id of one of its issues, or by a prefix of its id."""
    if name in known:
        return known[name]
    matches = [each for each in _findings_of_issue(history, name) if each in known]
    if not matches and len(name) >= SHORTEST_PREFIX:
        matches = [each for each in known if each.startswith(name)]
    if not matches:
        raise UnknownName("finding", name, known)
    if len(matches) > 1:
        raise UsageError(f"{name!r} matches several findings: {', '.join(matches)}")
    return known[matches[0]]


def _findings_of_issue(history: Sequence[RecordedVisit], issue: str) -> list[str]:
    """Returns the findings that an issue's id belongs to, in the latest round that has it."""
    latest, findings = 0, dict[str, None]()
    for visit in history:
        for critique in (visit.after.get("critiques_by_step") or {}).get(visit.step, ()):
            ids = [each.get("finding_id", "") for each in critique["issues"] if each["id"] == issue]
            if ids and critique["round"] > latest:
                latest, findings = critique["round"], {}
            findings.update(dict.fromkeys(ids))
    return list(findings)


def _decision(history: Sequence[RecordedVisit], finding: str) -> Mapping[str, Any] | None:
    """Returns the last decision about a finding; later judges may not have seen it."""
    for visit in reversed(history):
        for decision in (visit.after.get("last_adjudication") or {}).get("decisions", ()):
            if decision.get("finding_id") == finding:
                return dict(decision)
    return None


def _history(events: Iterable[ev.Event]) -> Iterator[RecordedVisit]:
    state = RunState()
    for event in events:
        step, iteration, before = state.step or "", state.iteration, state.state
        evolve(state, event)
        if isinstance(event, ev.StepFinished):
            yield RecordedVisit(step, iteration, before, state.state)
    if state.pending is not None:
        # The last step has finished, but a human still decides whether its result is used.
        step, after = state.step or "", state.state_with_pending
        yield RecordedVisit(step, state.iteration, state.state, after)
