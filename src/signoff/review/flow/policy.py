"""Explains the behavior of a finding, and what another policy would have decided in a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from signoff.core import events as ev
from signoff.core.errors import UsageError
from signoff.core.fold import evolve
from signoff.core.run_state import RunState
from signoff.core.severity import IssueBehavior, Severity
from signoff.core.words import FindingStatus
from signoff.review.flow.model import POLICY_JUDGE, GenflowConfig, WorkflowStep, config_from_json
from signoff.review.flow.reading import read_policy
from signoff.review.flow.sections import constraint_from_dict
from signoff.review.flow.state import get_critiques_for_scope, read
from signoff.review.pure.constraint import Constraint, Level, ResolvedBehavior
from signoff.review.pure.critique import Adjudication, Critique, Verdict
from signoff.review.pure.finding import Finding
from signoff.review.pure.policy import check_verdict, policy_judge
from signoff.review.pure.record import Record


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


def explain(run: ReviewedRun, finding: Finding) -> Explanation:
    """Returns which level set the behavior of a finding, and what a judge decided about it."""
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


@dataclass(frozen=True)
class RecordedVisit:
    """One visit of a step: the state before and after it."""

    step: str
    iteration: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True)
class ReplayedIssue(Record):
    """One reported issue under both policies."""

    round: int
    step: str
    constraint: str
    issue: str
    finding: str
    """The id of its finding."""
    severity: Severity
    was: str
    now: IssueBehavior
    decided_by: Level
    changed: bool
    """Whether the other policy gives it another behavior."""

    @property
    def diverges(self) -> bool:
        """Whether the run would have continued differently from here."""
        stops = (IssueBehavior.HALT, IssueBehavior.ESCALATE)
        return self.changed and (self.now in stops or self.was in stops)


@dataclass(frozen=True)
class ReplayedVerdict(Record):
    """One verdict under both policies."""

    round: int
    step: str
    was: Verdict
    now: Verdict
    blocking: tuple[str, ...]
    """The findings that block under the other policy."""
    changed: bool
    """Whether the other policy leads to another verdict."""


@dataclass(frozen=True)
class Replay:
    """A run's decisions under another policy."""

    issues: tuple[ReplayedIssue, ...]
    verdicts: tuple[ReplayedVerdict, ...]
    parts_at: str
    """Where the run would first have continued differently; empty if nowhere.

    Later steps are recorded as they happened, though the other policy would not have led there.
    """

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "findings": [each.to_json() for each in self.issues],
            "verdicts": [each.to_json() for each in self.verdicts],
            "changed": any(each.changed for each in self.issues)
            or any(each.changed for each in self.verdicts),
            "parts_at": self.parts_at or None,
        }


def recompute(
    history: Sequence[RecordedVisit], policy: GenflowConfig, constraints: Mapping[str, Constraint]
) -> Replay:
    """Recomputes the behavior of every issue, and every verdict."""
    steps = {step.id: step for step in policy.workflow}
    issues: list[ReplayedIssue] = []
    verdicts: list[ReplayedVerdict] = []
    parts_at = ""
    for visit in history:
        kind = (visit.after.get("step") or {}).get("kind")
        diverges = False
        if kind == "critique":
            replayed = list(_issues(visit, policy, constraints))
            issues += replayed
            diverges = any(each.diverges for each in replayed)
        elif kind == "adjudicate" and visit.step in steps:
            verdicts.append(_verdict(visit, steps[visit.step], policy, constraints))
            diverges = verdicts[-1].changed
        # Only the first difference is certain: from there on, the other policy would have led to
        # other texts and other findings.
        if diverges and not parts_at:
            parts_at = f"round {visit.iteration}, step {visit.step}"
    return Replay(tuple(issues), tuple(verdicts), parts_at)


def _issues(
    visit: RecordedVisit, policy: GenflowConfig, constraints: Mapping[str, Constraint]
) -> Iterator[ReplayedIssue]:
    for critique in read(visit.after["critiques_by_step"].get(visit.step, ())):
        constraint = _constraint(constraints, critique)
        for issue in critique.issues:
            now = policy.behavior(constraint, issue.severity)
            about = (constraint.id, issue.id, issue.finding_id, issue.severity, issue.behavior)
            changed = issue.behavior != now.behavior
            found = (visit.iteration, visit.step, *about)
            yield ReplayedIssue(*found, now.behavior, now.level, changed)


def _verdict(
    visit: RecordedVisit,
    step: WorkflowStep,
    policy: GenflowConfig,
    constraints: Mapping[str, Constraint],
) -> ReplayedVerdict:
    was = Adjudication.from_json(visit.after["last_adjudication"])
    critiques = [
        policy.with_behaviors(each, _constraint(constraints, each))
        for each in get_critiques_for_scope(visit.before, step.scope)
    ]
    block_on = policy.adjudication.block_on
    if step.agent == POLICY_JUDGE:
        now = policy_judge(critiques, iteration=visit.iteration, block_on=block_on)
    else:
        # The judge's own words are judged again. Its checked verdict already has the old policy in
        # it.
        now = check_verdict(replace(was, status=was.stated or was.status), critiques, block_on)
    blocking = tuple(each.finding_id or each.issue_id for each in now.pursued(block_on))
    changed = was.status is not now.status
    return ReplayedVerdict(visit.iteration, visit.step, was.status, now.status, blocking, changed)


def _constraint(constraints: Mapping[str, Constraint], critique: Critique) -> Constraint:
    return constraints.get(critique.constraint_id, Constraint(critique.constraint_id))
