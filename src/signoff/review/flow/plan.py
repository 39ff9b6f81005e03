"""What a run of a flow would do: the calls of each step, and how many a run makes at most.

Nothing is started. The files of a review are read, because they decide how many calls there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.amounts import count
from signoff.core.workflow import Workflow
from signoff.notation import AgentJob, Ask, DryRunPlan
from signoff.review.flow.model import POLICY_JUDGE, Flow, StepKind, VerifyConfig, WorkflowStep
from signoff.review.flow.state import FILE_WARNINGS, PREPARED, FlowState
from signoff.review.flow.steps.critique import Reading
from signoff.review.flow.steps.handler import FlowHandler

JOBS = {
    StepKind.GENERATE: AgentJob.WRITE,
    StepKind.REFINE: AgentJob.WRITE,
    StepKind.CRITIQUE: AgentJob.REVIEW,
    StepKind.ADJUDICATE: AgentJob.JUDGE,
}
"""What the agents of each kind of step do."""
SETTINGS = {
    StepKind.CRITIQUE: ("execution",),
    StepKind.ADJUDICATE: ("scope",),
    StepKind.REFINE: ("mode", "loop_to"),
}
"""The keys of each kind of step that a plan shows."""
COLUMNS = ("STEP", "KIND", "AGENT", "MODEL", "CALLS", "WHAT")


@dataclass(frozen=True)
class PlannedCall:
    """One call that a step makes."""

    agent: str
    decided_by: str
    """The rule that selected the agent."""
    constraint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        constraint = {"constraint": self.constraint} if self.constraint else {}
        return {**constraint, "agent": self.agent, "decided_by": self.decided_by}


@dataclass(frozen=True)
class PlannedStep:
    """The calls of one step."""

    step: WorkflowStep
    calls: tuple[PlannedCall, ...]

    @property
    def retries(self) -> int:
        """Further calls in one round, at most: answers that are sent back to be corrected."""
        if self.step.step is StepKind.REFINE:
            return self.step.validation_retries
        corrected = (StepKind.CRITIQUE, StepKind.ADJUDICATE)
        return len(self.calls) if self.step.step in corrected else 0

    @property
    def agents(self) -> list[str]:
        """The agents that are asked."""
        return list(dict.fromkeys(call.agent for call in self.calls))

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that only steps of this kind have."""
        shown = {name: getattr(self.step, name) for name in SETTINGS.get(self.step.step, ())}
        if self.step.step is StepKind.CRITIQUE:
            shown["constraints"] = list(dict.fromkeys(call.constraint for call in self.calls))
        return shown

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "step": self.step.id,
            "kind": self.step.step.value,
            "agents": self.agents,
            "model": self.step.model,
            **self.settings,
            "calls": len(self.calls),
            "calls_again": self.retries,
            "asks": [call.to_json() for call in self.calls],
        }

    @property
    def row(self) -> tuple[object, ...]:
        """The step as a row of the table."""
        step = self.step
        agents = ", ".join(self.agents) or step.agent or "-"
        calls = f"{len(self.calls)} (+{self.retries})" if self.retries else str(len(self.calls))
        what = "; ".join(
            f"{name} {', '.join(value) if isinstance(value, list) else value}"
            for name, value in self.settings.items()
            if value
        )
        return step.id, step.step.value, agents, step.model or "-", calls, what


@dataclass(frozen=True)
class FlowPlan:
    """The whole plan, for humans and for programs."""

    steps: tuple[PlannedStep, ...]
    rounds: int
    warnings: tuple[str, ...] = ()
    """About the files that were read; a run that starts has them in its log."""
    flow_warnings: tuple[str, ...] = ()
    """Only for programs, since every start of a run prints them anyway."""
    verify: VerifyConfig | None = None

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """The steps as a table."""
        return [each.row for each in self.steps]

    @property
    def notes(self) -> list[str]:
        """What the table does not show."""
        calls = self.calls
        bound = f"at most {count(calls['at_most'], 'call')}: {calls['per_round']} a round"
        more = f"and up to {calls['again_at_most']} more if answers have to be corrected"
        return [
            *self._reviewers(),
            *self._fixers(),
            f"{bound}, {count(self.rounds, 'round')}",
            f"{more}; transient errors are retried",
            *self._confirmations(),
        ]

    def _confirmations(self) -> Iterator[str]:
        if self.verify is not None:
            which = f"each finding that is {self.verify.min_severity.value} or worse"
            yield f"and one call of {self.verify.agent} for {which} (verify)"

    @property
    def asks(self) -> list[Ask]:
        """The agents that a run asks, and for what."""
        confirming = (
            [Ask(self.verify.agent, None, AgentJob.JUDGE)] if self.verify is not None else []
        )
        asked = (
            Ask(agent, each.step.model, JOBS[each.step.step])
            for each in self.steps
            for agent in each.agents
        )
        return [*asked, *confirming]

    @property
    def facts(self) -> Mapping[str, Any]:
        """The plan as plain values."""
        steps = [each.to_json() for each in self.steps]
        return {
            "plan": steps,
            "calls": self.calls,
            "warnings": [*self.flow_warnings, *self.warnings],
        }

    @property
    def calls(self) -> dict[str, int]:
        """How many calls a run makes at most; corrections are counted separately."""
        per_round = sum(len(each.calls) for each in self.steps)
        return {
            "per_round": per_round,
            "rounds": self.rounds,
            "at_most": per_round * self.rounds,
            "again_at_most": sum(each.retries for each in self.steps) * self.rounds,
        }

    def _reviewers(self) -> Iterator[str]:
        for each in self.steps:
            constraints: dict[tuple[str, str], list[str]] = {}
            for call in each.calls:
                if call.constraint:
                    reviewer = call.agent, call.decided_by
                    constraints.setdefault(reviewer, []).append(call.constraint)
            for (agent, rule), ids in constraints.items():
                names = ", ".join(dict.fromkeys(ids))
                yield f"{each.step.id}: {agent} reviews {names} ({rule})"

    def _fixers(self) -> Iterator[str]:
        for each in self.steps:
            if each.step.step is StepKind.REFINE and each.calls:
                call = each.calls[0]
                yield f"{each.step.id}: {call.agent} fixes ({call.decided_by})"


def dry_run(workflow: Workflow) -> DryRunPlan:
    """Returns the same as `run --dry-run` shows it."""
    planned = plan(workflow)
    return DryRunPlan(COLUMNS, planned.rows, planned.notes, planned.facts, planned.warnings)


def plan(workflow: Workflow) -> FlowPlan:
    """Returns what a run of a compiled flow would do."""
    # A compiled flow keeps no reference to its flow except in its handlers.
    handlers = [step.handler for step in workflow.steps.values()]
    flow: Flow = handlers[0].flow  # type: ignore[union-attr]  # every step of a flow has one
    files = workflow.prepare({}) if workflow.prepare is not None else {}
    state = FlowState({name: files[name] for name in PREPARED if name in files})
    steps = tuple(
        PlannedStep(step, tuple(_calls(workflow.steps[step.id].handler, state)))  # type: ignore[arg-type]  # as above
        for step in flow.config.workflow
    )
    config = flow.config
    warnings = tuple(files.get(FILE_WARNINGS, ()))
    return FlowPlan(steps, config.max_iterations, warnings, workflow.warnings, config.verify)


def asks(workflow: Workflow, _params: Mapping[str, Any]) -> list[Ask]:
    """Returns the agents that a run asks, and for what."""
    return plan(workflow).asks


def _calls(handler: FlowHandler, state: FlowState) -> Iterator[PlannedCall]:
    flow, step = handler.flow, handler.step
    if step.step is StepKind.CRITIQUE:
        for item in (item for group in Reading(flow, step, state).items() for item in group):
            constraint, agent = flow.by_id[item["constraint"]], item["agent"]
            _agents, rule = flow.routing(step, constraint)
            yield PlannedCall(agent, rule, constraint.id)
    elif step.step is not StepKind.SIGN_OFF and flow.agent(step) != POLICY_JUDGE:
        # The user may wonder why an agent is asked at all, most of all if it costs money.
        rule = "the step's agent" if step.agent else "the default agent"
        call = PlannedCall(flow.agent(step), rule)
        # Files are fixed one by one, and all of them may have findings.
        by_file = step.step is StepKind.REFINE and state.has_files
        yield from (call for _ in (state.files if by_file else [""]))
