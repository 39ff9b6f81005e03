"""Explains why a finding did what it did, and what another policy would have made of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff.app.history import events_of, folded
from signoff.app.project import Project
from signoff.core import events as ev
from signoff.core.delta import merged
from signoff.core.fold import evolve
from signoff.core.run_state import RunState
from signoff.errors import UnknownName, UsageError
from signoff.runtime.store_port import RunRow

if TYPE_CHECKING:
    from signoff.flows.model import GenflowConfig
    from signoff.flows.replay import Done, Replay
    from signoff.review.behaviors import Resolved
    from signoff.review.constraint import Constraint
    from signoff.review.finding import Finding

LEAST_OF_ID = 4
"""Characters of a finding's id that are enough to name it."""


@dataclass(frozen=True)
class Explanation:
    """Why a finding did what it did."""

    run: str
    finding: Finding
    resolved: Resolved
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
                for level, said in self.resolved.stated
            ],
            "blocks_approval": self.blocks,
            "unverified": self.unverified,
            "decision": dict(self.decision) if self.decision else None,
        }


def explain(project: Project, run: str, named: str) -> Explanation:
    """Returns which level decided about a finding, and what a judge made of it."""
    from signoff.review.constraint import Constraint

    row, config, constraints = _definition(project, run)
    known = _known(folded(project, row).state_with_pending)
    history = list(_history(project, row))
    finding = _finding(known, history, named)
    constraint = constraints.get(finding.constraint, Constraint(finding.constraint))
    return Explanation(
        run=row.name,
        finding=finding,
        resolved=config.behavior(constraint, finding.severity),
        blocks=finding.severity in config.adjudication.block_on,
        decision=_decision(history, finding.id),
        unverified=finding.unverified,
    )


def findings(project: Project, run: str) -> list[Finding]:
    """Returns every finding of a run, in the order they were made."""
    row, _config, _constraints = _definition(project, run)
    return list(_known(folded(project, row).state_with_pending).values())


def replay(project: Project, run: str, policy: Path) -> Replay:
    """Recomputes a run's routing under the policy of a file; no model is asked."""
    from signoff.flows.reading import read_policy
    from signoff.flows.replay import replay as recompute

    row, config, constraints = _definition(project, run)
    return recompute(list(_history(project, row)), read_policy(policy, config), constraints)


def _definition(
    project: Project, run: str
) -> tuple[RunRow, GenflowConfig, Mapping[str, Constraint]]:
    from signoff.flows.constraint_file import constraint_from_dict
    from signoff.flows.serialize import config_from_json

    row = project.run(run)
    description = json.loads(project.store.description(row.id))
    if description.get("notation") != "flows":
        raise UsageError(f"run {row.name!r} is no review flow; only those have a policy")
    source = description["source"]
    constraints = [constraint_from_dict(each) for each in source["constraints"]]
    return row, config_from_json(source["flow"]), {each.id: each for each in constraints}


def _known(state: Mapping[str, Any]) -> Mapping[str, Finding]:
    from signoff.review.findings import Ledger

    return Ledger.from_json(state.get("findings")).findings


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


def _history(project: Project, row: RunRow) -> Iterator[Done]:
    """Yields every step a run has worked, with the state before and after it."""
    from signoff.flows.replay import Done

    state = RunState()
    for _seq, event in events_of(project, row):
        step, iteration, before = state.step or "", state.iteration, state.state
        evolve(state, event)
        if isinstance(event, ev.StepFinished):
            yield Done(step, iteration, before, state.state)
    if state.pending is not None:
        held_back = merged(state.state, state.pending.delta)
        yield Done(state.step or "", state.iteration, state.state, held_back)
