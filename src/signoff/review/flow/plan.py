"""What a run of a flow would do: the calls of each step, and how many a run makes at most.

Nothing is started. The files of a review are read, because they decide how many calls there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signoff.core.amounts import count
from signoff.core.workflow import Workflow
from signoff.notation import AgentJob, Ask, DryRunPlan
from signoff.review.flow.model import POLICY_JUDGE, Flow, StepKind, WorkflowStep
from signoff.review.flow.state import FILE_WARNINGS, PREPARED, FlowState
from signoff.review.flow.steps.critique import CriticPanel
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

    @property
    def notes(self) -> list[str]:
        """Who reviews or fixes, and which rule says so."""
        if self.step.step is StepKind.REFINE:
            calls = self.calls[:1]
            return [f"{self.step.id}: {each.agent} fixes ({each.decided_by})" for each in calls]
        constraints: dict[tuple[str, str], dict[str, None]] = {}
        for call in self.calls:
            if call.constraint:
                constraints.setdefault((call.agent, call.decided_by), {})[call.constraint] = None
        return [
            f"{self.step.id}: {agent} reviews {', '.join(names)} ({rule})"
            for (agent, rule), names in constraints.items()
        ]

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


def dry_run(workflow: Workflow) -> DryRunPlan:
    """Returns the same as `run --dry-run` shows it."""
    config, files = _flow(workflow).config, _files(workflow)
    steps, warnings = planned_steps(workflow, files), files.get(FILE_WARNINGS, ())
    calls = _bounds(steps, config.max_iterations)
    facts = {
        "plan": [each.to_json() for each in steps],
        "calls": calls,
        # Every start of a run prints those of the flow anyway, but programs do not see them.
        "warnings": [*workflow.warnings, *warnings],
    }
    rounds = count(config.max_iterations, "round")
    bound = f"at most {count(calls['at_most'], 'call')}: {calls['per_round']} a round, {rounds}"
    more = f"and up to {calls['again_at_most']} more if answers have to be corrected"
    notes = [
        *(note for each in steps for note in each.notes),
        bound,
        f"{more}; transient errors are retried",
    ]
    if config.verify is not None:
        which = f"each finding that is {config.verify.min_severity.value} or worse"
        notes.append(f"and one call of {config.verify.agent} for {which} (verify)")
    return DryRunPlan(COLUMNS, [each.row for each in steps], notes, facts, warnings)


def asks(workflow: Workflow, _params: Mapping[str, Any]) -> list[Ask]:
    """Returns the agents that a run asks, and for what."""
    verify = _flow(workflow).config.verify
    asked = [
        Ask(agent, each.step.model, JOBS[each.step.step])
        for each in planned_steps(workflow, _files(workflow))
        for agent in each.agents
    ]
    return [*asked, *([Ask(verify.agent, None, AgentJob.JUDGE)] if verify is not None else [])]


def call_bounds(workflow: Workflow) -> dict[str, int]:
    """Returns how many calls a run makes at most; corrections are counted separately."""
    steps = planned_steps(workflow, _files(workflow))
    return _bounds(steps, _flow(workflow).config.max_iterations)


def planned_steps(workflow: Workflow, files: Mapping[str, Any]) -> list[PlannedStep]:
    """Returns what the steps of a compiled flow would do in the first round."""
    state = FlowState({name: files[name] for name in PREPARED if name in files})
    return [
        PlannedStep(step, tuple(_calls(workflow.steps[step.id].handler, state)))  # type: ignore[arg-type]  # as below
        for step in _flow(workflow).config.workflow
    ]


def _flow(workflow: Workflow) -> Flow:
    # A compiled flow keeps no reference to its flow except in its handlers.
    handlers = [step.handler for step in workflow.steps.values()]
    flow: Flow = handlers[0].flow  # type: ignore[union-attr]  # every step of a flow has one
    return flow


def _files(workflow: Workflow) -> Mapping[str, Any]:
    return workflow.prepare({}) if workflow.prepare is not None else {}


def _bounds(steps: Sequence[PlannedStep], rounds: int) -> dict[str, int]:
    per_round = sum(len(each.calls) for each in steps)
    return {
        "per_round": per_round,
        "rounds": rounds,
        "at_most": per_round * rounds,
        "again_at_most": sum(each.retries for each in steps) * rounds,
    }


def _calls(handler: FlowHandler, state: FlowState) -> Iterator[PlannedCall]:
    flow, step = handler.flow, handler.step
    if step.step is StepKind.CRITIQUE:
        for item in (item for group in CriticPanel(flow, step, state).items() for item in group):
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
