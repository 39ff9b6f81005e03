"""What another policy would have decided in a run, from what the run recorded; asks no agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from signoff.core.severity import IssueBehavior
from signoff.flows.model import GenflowConfig
from signoff.flows.state import critiques_in_scope, read
from signoff.flows.step import POLICY_JUDGE, WorkflowStep
from signoff.review.adjudication import Adjudication, Verdict
from signoff.review.constraint import Constraint, Level
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.policy import check_verdict, policy_judge


@dataclass(frozen=True)
class RecordedVisit:
    """One visit of a step: the state before and after it."""

    step: str
    iteration: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True)
class ReplayedIssue:
    """One reported issue under both policies."""

    iteration: int
    step: str
    constraint: str
    issue: CritiqueIssue
    now: IssueBehavior
    level: Level

    @property
    def changed(self) -> bool:
        """Whether the other policy gives it another behavior."""
        return self.issue.behavior != self.now

    @property
    def diverges(self) -> bool:
        """Whether the run would have continued differently from here."""
        stops = (IssueBehavior.HALT, IssueBehavior.ESCALATE)
        return self.changed and (self.now in stops or self.issue.behavior in stops)

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "round": self.iteration,
            "step": self.step,
            "constraint": self.constraint,
            "issue": self.issue.id,
            "finding": self.issue.finding_id,
            "severity": self.issue.severity.value,
            "was": self.issue.behavior,
            "now": self.now.value,
            "decided_by": self.level.value,
            "changed": self.changed,
        }


@dataclass(frozen=True)
class ReplayedVerdict:
    """One verdict under both policies."""

    iteration: int
    step: str
    was: Verdict
    now: Verdict
    blocking: tuple[str, ...]
    """The findings that block under the other policy."""

    @property
    def changed(self) -> bool:
        """Whether the other policy leads to another verdict."""
        return self.was is not self.now

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "round": self.iteration,
            "step": self.step,
            "was": self.was.value,
            "now": self.now.value,
            "blocking": list(self.blocking),
            "changed": self.changed,
        }


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
            "changed": any(e.changed for e in self.issues) or any(v.changed for v in self.verdicts),
            "parts_at": self.parts_at or None,
        }


def replay(
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
            yield ReplayedIssue(
                visit.iteration, visit.step, constraint.id, issue, now.behavior, now.level
            )


def _verdict(
    visit: RecordedVisit,
    step: WorkflowStep,
    policy: GenflowConfig,
    constraints: Mapping[str, Constraint],
) -> ReplayedVerdict:
    was = Adjudication.from_json(visit.after["last_adjudication"])
    critiques = [
        policy.with_behaviors(each, _constraint(constraints, each))
        for each in read(critiques_in_scope(visit.before, step.scope))
    ]
    block_on = policy.adjudication.block_on
    if step.agent == POLICY_JUDGE:
        now = policy_judge(critiques, iteration=visit.iteration, block_on=block_on)
    else:
        now = check_verdict(replace(was, status=was.stated or was.status), critiques, block_on)
    blocking = tuple(each.finding_id or each.issue_id for each in now.pursued(block_on))
    return ReplayedVerdict(visit.iteration, visit.step, was.status, now.status, blocking)


def _constraint(constraints: Mapping[str, Constraint], critique: Critique) -> Constraint:
    return constraints.get(critique.constraint_id, Constraint(critique.constraint_id))
