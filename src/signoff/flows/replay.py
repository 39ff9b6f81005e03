"""What another policy would have made of a run, from what the run recorded. Asks nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from signoff.flows.model import GenflowConfig
from signoff.flows.state import critiques_in_scope, read
from signoff.flows.step import POLICY_JUDGE, WorkflowStep
from signoff.review.adjudication import Adjudication, Verdict
from signoff.review.behaviors import IssueBehavior, Level
from signoff.review.constraint import Constraint
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.policy import check_verdict, policy_judge


@dataclass(frozen=True)
class Done:
    """One step of a run as it was: the state it found and the state it left."""

    step: str
    iteration: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True)
class Rerouted:
    """One reported issue under both policies."""

    visit: int
    """Which step of the run reported it, counted from its start."""
    iteration: int
    step: str
    constraint: str
    issue: CritiqueIssue
    now: IssueBehavior
    level: Level

    @property
    def changed(self) -> bool:
        """Whether the other policy does something else with it."""
        return self.issue.behavior != self.now

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "iteration": self.iteration,
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
class Rejudged:
    """One verdict under both policies."""

    visit: int
    """Which step of the run gave it, counted from its start."""
    iteration: int
    step: str
    was: Verdict
    now: Verdict
    blocking: tuple[str, ...]
    """What the other policy says is still in the way."""

    @property
    def changed(self) -> bool:
        """Whether the other policy comes to another verdict."""
        return self.was is not self.now

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "iteration": self.iteration,
            "step": self.step,
            "was": self.was.value,
            "now": self.now.value,
            "blocking": list(self.blocking),
            "changed": self.changed,
        }


@dataclass(frozen=True)
class Replay:
    """A run's routing under another policy."""

    issues: tuple[Rerouted, ...]
    verdicts: tuple[Rejudged, ...]

    @property
    def parts_at(self) -> str:
        """Where the run would first have gone another way; empty when it would not have.

        What comes after that point was recorded on a road the other policy does not take.
        """
        moves = (IssueBehavior.HALT.value, IssueBehavior.ESCALATE.value)
        points: list[Rerouted | Rejudged] = [
            each
            for each in self.issues
            if each.changed and (each.now.value in moves or each.issue.behavior in moves)
        ]
        points += [each for each in self.verdicts if each.changed]
        if not points:
            return ""
        first = min(points, key=lambda each: each.visit)
        return f"iteration {first.iteration}, step {first.step}"

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "issues": [each.to_json() for each in self.issues],
            "verdicts": [each.to_json() for each in self.verdicts],
            "changed": any(e.changed for e in self.issues) or any(v.changed for v in self.verdicts),
            "parts_at": self.parts_at or None,
        }


def replay(
    history: Sequence[Done], policy: GenflowConfig, constraints: Mapping[str, Constraint]
) -> Replay:
    """Recomputes what every finding does and what every judge's word is worth."""
    steps = {step.id: step for step in policy.workflow}
    issues: list[Rerouted] = []
    verdicts: list[Rejudged] = []
    for visit, done in enumerate(history):
        kind = (done.after.get("step") or {}).get("kind")
        if kind == "critique":
            issues += _rerouted(visit, done, policy, constraints)
        elif kind == "adjudicate" and done.step in steps:
            verdicts.append(_rejudged(visit, done, steps[done.step], policy, constraints))
    return Replay(tuple(issues), tuple(verdicts))


def _rerouted(
    visit: int, done: Done, policy: GenflowConfig, constraints: Mapping[str, Constraint]
) -> list[Rerouted]:
    found = []
    for critique in read(done.after["critiques_by_step"].get(done.step, ())):
        constraint = constraints.get(critique.constraint_id, Constraint(critique.constraint_id))
        for issue in critique.issues:
            said = policy.behavior(constraint, issue.severity)
            found.append(
                Rerouted(
                    visit=visit,
                    iteration=done.iteration,
                    step=done.step,
                    constraint=constraint.id,
                    issue=issue,
                    now=said.behavior,
                    level=said.level,
                )
            )
    return found


def _rejudged(
    visit: int,
    done: Done,
    step: WorkflowStep,
    policy: GenflowConfig,
    constraints: Mapping[str, Constraint],
) -> Rejudged:
    was = Adjudication.from_json(done.after["last_adjudication"])
    seen = read(critiques_in_scope(done.before, step.scope))
    critiques = [_under(policy, each, constraints) for each in seen]
    block_on = policy.adjudication.block_on
    if step.agent == POLICY_JUDGE:
        now = policy_judge(critiques, iteration=done.iteration, block_on=block_on)
    else:
        now = check_verdict(replace(was, status=was.stated or was.status), critiques, block_on)
    blocking = tuple(decision.issue_id for decision in now.pursued(block_on))
    return Rejudged(visit, done.iteration, done.step, was.status, now.status, blocking)


def _under(
    policy: GenflowConfig, critique: Critique, constraints: Mapping[str, Constraint]
) -> Critique:
    constraint = constraints.get(critique.constraint_id, Constraint(critique.constraint_id))
    issues = (
        replace(issue, behavior=policy.behavior(constraint, issue.severity).behavior.value)
        for issue in critique.issues
    )
    return replace(critique, issues=tuple(issues))
