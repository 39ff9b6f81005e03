"""One reading of the artifact by critics: who reads, what they found, what the state keeps of it.

A critique step reads, and a judge whose approval would end the run has the rest read first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import filterfalse
from math import inf
from typing import Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.flows.flow import Flow
from signoff.flows.state import FlowState, reading_key, stored
from signoff.flows.step import WorkflowStep
from signoff.flows.steps.critic import CERTAIN, CONSTRAINTS, CRITIQUES, CriticHandler
from signoff.flows.steps.updates import critique_warnings, report_warnings, with_round
from signoff.review.behaviors import IssueBehavior
from signoff.review.constraint import Constraint
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.evidence import ArtifactText
from signoff.review.finding import FindingStatus, is_set_aside
from signoff.review.findings import Ledger

Item = Mapping[str, str]
"""A constraint and the agent that reads the artifact against it."""

MOST_COMBINED = 8
"""Constraints that one critic reads again in one call; with more, it would overlook too much."""
INSTRUCTIONS = 4_000
"""Characters that every call sends apart from its material: the role, the format, examples."""


@dataclass(frozen=True)
class Reading:
    """The critics of one critique step and the artifact they read."""

    flow: Flow
    step: WorkflowStep
    state: FlowState

    @cached_property
    def text(self) -> ArtifactText:
        """The artifact, prepared for looking up quotes."""
        return ArtifactText(self.state.artifact)

    @cached_property
    def ledger(self) -> Ledger:
        """All findings so far."""
        return self.state.ledger

    def items(self) -> list[list[Item]]:
        """Returns all reviews of the step, grouped by constraint."""
        return [
            [{"constraint": c.id, "agent": agent} for agent in self.flow.reviewers(self.step, c)]
            for c in self.flow.selected(self.step)
        ]

    def due(self) -> list[list[Item]]:
        """Returns the reviews to make now, grouped by constraint: all that are needed, and more."""
        groups = self.items()
        if self.flow.config.rereview == "all":
            return groups
        needed = [item for group in groups for item in group if self._is_due(item)]
        chosen = [*needed, *self._joining(needed)]
        due = [[item for item in group if item in chosen] for group in groups]
        return [group for group in due if group]

    def skipped(self, due: Sequence[Sequence[Item]]) -> list[Item]:
        """Returns the reviews that are not made now."""
        chosen = [item for group in due for item in group]
        return [item for group in self.items() for item in group if item not in chosen]

    def unread(self) -> list[Item]:
        """Returns the reviews of which no answer is about the current version."""
        version, readings = self.state.version, self.state.readings
        return [
            item
            for group in self.items()
            for item in group
            if readings.get(reading_key(**item)) != version
        ]

    def _is_due(self, item: Item) -> bool:
        """Whether a critic can have something new to say: see `rereview` in the flow's settings."""
        if reading_key(**item) not in self.state.readings:
            return True
        if self.flow.capabilities(item["agent"]).deterministic:
            return True  # A program costs nothing and may look at more than the artifact.
        known = [f for f in self.ledger.findings.values() if f.constraint == item["constraint"]]
        if any(finding.status is FindingStatus.OPEN for finding in known):
            return True
        cited = [finding.quote for finding in known if not finding.omission]
        return any(self._before.contains(q) and not self.text.contains(q) for q in cited)

    def _joining(self, needed: Sequence[Item]) -> list[Item]:
        """Returns reviews that are not needed yet, but cost little in a call that is made anyway.

        They find what a fix broke a round earlier, and are not left for a call before the approval.
        """
        if not self.state.readings_join or self.step.execution != "parallel":
            return []
        unread = [item for item in self.unread() if self._can_be_combined(item)]
        joining: list[Item] = []
        for agent in dict.fromkeys(item["agent"] for item in unread if item in needed):
            calls = [i for i in needed if i["agent"] == agent and self._can_be_combined(i)]
            others = [i for i in unread if i["agent"] == agent and i not in needed]
            joining += self._affordable(others)[: -len(calls) % MOST_COMBINED]
        return joining

    def _affordable(self, items: Sequence[Item]) -> list[Item]:
        """Returns reviews that add less to a prompt than a call of their own would repeat."""
        budget: float = INSTRUCTIONS + len(self.state.artifact) + len(self.state.source())
        chosen: list[Item] = []
        for item in items:
            size = self._size(self.flow.by_id[item["constraint"]])
            if size <= budget:
                chosen.append(item)
                budget -= size
        return chosen

    def _size(self, constraint: Constraint) -> float:
        """Returns how many characters a constraint adds to a prompt.

        Our own wording is not counted: a later release, which words it differently, must make the
        same choice when it resumes a run.
        """
        if constraint.script.strip():
            return inf  # What it prints is not known before it has run.
        texts = [constraint.summary]
        for rule in constraint.rules:
            texts += [rule.text, rule.violation, rule.compliant]
        sources = self.state.source(constraint.id)
        shown_above = sources == self.state.source()
        return sum(map(len, texts)) + (0 if shown_above else len(sources))

    @cached_property
    def _before(self) -> ArtifactText:
        return ArtifactText(self.state.previously_reviewed)

    async def read(self, ctx: StepContext, groups: Sequence[Sequence[Item]]) -> list[Any]:
        """Has the critics review the artifact; returns their critiques as stored values."""
        if self.step.execution == "parallel":
            items = [item for group in groups for item in group]
            return await self.read_all(ctx, items, key="critics")
        results: list[Any] = []
        for group in groups:
            results += await self.read_all(ctx, group, key=group[0]["constraint"])
            if issues_that(_critiques(results), IssueBehavior.HALT, IssueBehavior.ESCALATE):
                break
        return results

    async def read_all(self, ctx: StepContext, items: Sequence[Item], *, key: str) -> list[Any]:
        """Has these critics review the artifact at the same time."""
        critic = CriticHandler(self.flow, self.step, self.state, self.text)
        results = await ctx.map(
            self._combined(items), critic, key=key, cache_group=self._cache_group
        )
        critiques = [each for result in results for each in result.get(CRITIQUES, [result])]
        order = [reading_key(**item) for item in items]
        return sorted(
            critiques, key=lambda c: order.index(reading_key(c["constraint_id"], c["reviewer"]))
        )

    def _combined(self, items: Sequence[Item]) -> list[Mapping[str, Any]]:
        """Returns the calls to make: what a model has read before, it reads again in one call.

        A first reading deserves the whole attention of a critic. Later ones look for what a fix
        left or broke, and would otherwise send the artifact once for each constraint.
        """
        if self.flow.config.rereview == "all" or self.step.execution != "parallel":
            return [*items]
        again: dict[str, list[str]] = {}
        for item in filter(self._can_be_combined, items):
            again.setdefault(item["agent"], []).append(item["constraint"])
        combined = [
            {CONSTRAINTS: names[start : start + MOST_COMBINED], "agent": agent}
            for agent, names in again.items()
            for start in range(0, len(names), MOST_COMBINED)
        ]
        return [*filterfalse(self._can_be_combined, items), *combined]

    def _can_be_combined(self, item: Item) -> bool:
        can = self.flow.capabilities(item["agent"])
        is_model = can.is_model and not (can.deterministic or can.answered_by_human)
        return is_model and reading_key(**item) in self.state.readings

    def _cache_group(self, item: Mapping[str, Any]) -> str | None:
        """Returns the agent, if it pays once for what all its prompts begin with."""
        agent = item["agent"]
        return agent if self.flow.capabilities(agent).prompt_caching else None

    def _certain(self, results: Sequence[Mapping[str, Any]]) -> set[tuple[str, str]]:
        """Returns the constraints and reviewers of critiques that overlook nothing.

        They are those of programs, and those of humans, who decide what counts.
        """
        return {
            (each["constraint_id"], each["reviewer"])
            for each in results
            if each.get(CERTAIN) or self._is_certain(each["reviewer"])
        }

    def _is_certain(self, agent: str) -> bool:
        can = self.flow.capabilities(agent)
        return can.deterministic or can.answered_by_human

    def update(
        self, ctx: StepContext, results: Sequence[Mapping[str, Any]], *, more: bool = False
    ) -> tuple[dict[str, Any], list[Critique]]:
        """Returns the update of the state, and the critiques with the ids of their findings.

        `more` keeps the step's other critiques: they are about the same text.
        """
        state, before = self.state, self.state.previously_reviewed
        ledger, critiques = self.ledger.record(
            iteration=ctx.iteration,
            critiques=_critiques(results),
            artifact=state.artifact,
            previous_artifact=before,
            certain=self._certain(results),
        )
        readings = {reading_key(c.constraint_id, c.reviewer): state.version for c in critiques}
        entries = [stored(critique, self.step.id) for critique in critiques]
        if more:
            others = state.critiques_by_step.get(self.step.id, [])
            keys = {reading_key(each["constraint_id"], each["reviewer"]): each for each in others}
            entries = [*(each for key, each in keys.items() if key not in readings), *entries]
        update: dict[str, Any] = {
            "critiques_by_step": {**state.critiques_by_step, self.step.id: entries},
            "findings": ledger.to_json(),
            "rounds": with_round(state, ledger, ctx.iteration),
            # The next review compares with this version: a finding whose quote is new was
            # introduced by a fix, the others were overlooked.
            "read": {"artifact": state.artifact, "before": before},
            "readings": {**state.readings, **readings},
            **report_warnings(ctx, critique_warnings(critiques)),
            **_answers(results),
        }
        return update, critiques


def issues_that(critiques: Sequence[Critique], *behaviors: IssueBehavior) -> list[CritiqueIssue]:
    """Returns the issues with a behavior; one that is set aside has no effect."""
    issues = [issue for critique in critiques for issue in critique.issues]
    return [each for each in issues if each.behavior in behaviors and not is_set_aside(each)]


def undecided(critiques: Sequence[Critique], findings: Ledger) -> list[CritiqueIssue]:
    """Returns the issues that a human must decide about, without those that one has decided."""
    escalated = {i.finding_id: i for i in issues_that(critiques, IssueBehavior.ESCALATE)}
    return [each for id_, each in escalated.items() if not findings.findings[id_].decision]


def format_issues(issues: Sequence[CritiqueIssue]) -> str:
    """Returns issues for a human."""
    return "\n".join(
        f"- [{issue.severity}] {issue.id}: {issue.finding}"
        + (f"\n  > {issue.evidence}" if issue.evidence else "")
        for issue in issues
    )


def _critiques(results: Sequence[Any]) -> list[Critique]:
    return [Critique.from_json(each) for each in results]


def _answers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the update that keeps new answers, so that the same is not asked twice."""
    answers = [
        {"request": each["request"], "answer": _answer(each)}
        for each in results
        if each.get("request") and not each.get("reused")
    ]
    answers += [entry for each in results for entry in each.get("verified", ())]
    return {"answered": Append(answers)} if answers else {}


def _answer(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in ("request", "verified")}
