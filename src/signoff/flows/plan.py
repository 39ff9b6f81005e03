"""What a run of a flow would do: who is asked what in each step, and how often at most.

Nothing is started. Sources are read, so that the sizes of prompts are what they would be
in the first round; what scripts print, and the artifact itself, come on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signoff.core.context import StepContext
from signoff.core.workflow import Workflow
from signoff.flows.flow import Flow
from signoff.flows.reviewers import routed
from signoff.flows.selection import resolve_constraints_for_step
from signoff.flows.step import POLICY_JUDGE, StepKind, WorkflowStep
from signoff.flows.steps.generate import author_prompt
from signoff.flows.steps.material import variables
from signoff.flows.steps.refine import in_words
from signoff.review.constraint import SourceBlock
from signoff.review.prompts import adjudicator_prompt, critic_prompt, refinement_prompt
from signoff.review.sources import SourceText, read_source
from signoff.runtime.amounts import count

COLUMNS = ("STEP", "KIND", "AGENT", "MODEL", "CALLS", "PROMPT", "WHAT")


@dataclass(frozen=True)
class Ask:
    """One call a step makes."""

    agent: str
    decided_by: str
    prompt_chars: int
    """In the first round, without the artifact."""
    constraint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        about = {"constraint": self.constraint} if self.constraint else {}
        said = {"agent": self.agent, "decided_by": self.decided_by}
        return {**about, **said, "prompt_chars": self.prompt_chars}


@dataclass(frozen=True)
class PlannedStep:
    """One step as it would be worked."""

    step: WorkflowStep
    asks: tuple[Ask, ...]
    again: int = 0
    """Further calls of one round, at most: corrections, and edits that are sent back."""

    @property
    def about(self) -> Mapping[str, Any]:
        """What the step's kind has to say."""
        step = self.step
        match step.step:
            case StepKind.CRITIQUE:
                names = dict.fromkeys(ask.constraint for ask in self.asks)
                return {"execution": step.execution, "constraints": list(names)}
            case StepKind.ADJUDICATE:
                return {"scope": step.scope}
            case StepKind.REFINE:
                return {"mode": step.mode, "loop_to": step.loop_to}
            case _:
                return {}

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "step": self.step.id,
            "kind": self.step.step.value,
            "agents": list(dict.fromkeys(ask.agent for ask in self.asks)),
            "model": self.step.model,
            **self.about,
            "calls": len(self.asks),
            "calls_again": self.again,
            "asks": [ask.to_json() for ask in self.asks],
        }


@dataclass(frozen=True)
class FlowPlan:
    """The whole plan, for people and for programs."""

    steps: tuple[PlannedStep, ...]
    rounds: int
    remarks: tuple[str, ...] = ()
    """About the flow itself; whoever starts a run is told them anyway."""
    warnings: tuple[str, ...] = ()
    """About its sources."""
    columns: Sequence[str] = field(default=COLUMNS)

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """The steps as a table."""
        return [_row(each) for each in self.steps]

    @property
    def notes(self) -> list[str]:
        """What the table does not say."""
        calls = self.calls
        bound = (
            f"at most {count(calls['at_most'], 'call')}: {calls['per_round']} a round, "
            f"{count(self.rounds, 'round')}"
        )
        again = (
            f"and {calls['again_at_most']} more where replies are sent back once; "
            "faults of agents that pass are met with further tries"
        )
        sizes = "prompts in characters, first round, without the artifact"
        return [*self._decided(), bound, again, sizes, *(f"warning: {w}" for w in self.warnings)]

    @property
    def facts(self) -> Mapping[str, Any]:
        """The plan as plain values."""
        return {
            "plan": [each.to_json() for each in self.steps],
            "calls": self.calls,
            "warnings": [*self.remarks, *self.warnings],
        }

    @property
    def calls(self) -> dict[str, int]:
        """How many calls a run makes at most, corrections counted apart."""
        per_round = sum(len(each.asks) for each in self.steps)
        again = sum(each.again for each in self.steps)
        return {
            "per_round": per_round,
            "rounds": self.rounds,
            "at_most": per_round * self.rounds,
            "again_at_most": again * self.rounds,
        }

    def _decided(self) -> Iterator[str]:
        for each in self.steps:
            by: dict[tuple[str, str], list[str]] = {}
            for ask in each.asks:
                if ask.constraint:
                    by.setdefault((ask.agent, ask.decided_by), []).append(ask.constraint)
            for (agent, why), constraints in by.items():
                yield f"{each.step.id}: {agent} reads {', '.join(constraints)} ({why})"


def plan(workflow: Workflow) -> FlowPlan:
    """Returns what a run of a compiled flow would do."""
    handlers = [step.handler for step in workflow.steps.values()]
    flow: Flow = handlers[0].flow  # type: ignore[union-attr]  # every step of a flow has one
    sources = _Sources(flow)
    steps = tuple(_PLANNED[step.step](flow, step, sources) for step in flow.config.workflow)
    warnings = tuple(dict.fromkeys(sources.warnings))
    return FlowPlan(steps, flow.config.max_iterations, workflow.warnings, warnings)


class _Sources:
    """Reads each source once, and keeps what is wrong with it."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._read: dict[str, SourceText] = {}
        self.warnings: list[str] = []

    def text(self, of: str, block: SourceBlock) -> str:
        if not block:
            return ""
        if of not in self._read:
            self._read[of] = self._reading(of, block)
        read = self._read[of]
        return "\n\n".join([read.text, *(f"(not read: {error})" for error in read.errors)])

    def _reading(self, of: str, block: SourceBlock) -> SourceText:
        flow = self._flow
        read = read_source(
            block,
            root=flow.root,
            allowed=[flow.root, *([flow.home] if flow.home else [])],
            variables=variables(StepContext("plan", run="NAME"), flow),
        )
        name = f"sources of {of or 'the goal'}"
        self.warnings += [f"{name}: {said}" for said in (*read.errors, *read.warnings)]
        if read.scripts and not flow.allow_scripts:
            self.warnings.append(f"{name}: scripts run only if the run allows them (allow_scripts)")
        return read


def _generate(flow: Flow, step: WorkflowStep, sources: _Sources) -> PlannedStep:
    prompt = author_prompt(flow, step, sources=sources.text("", flow.goal.source))
    return PlannedStep(step, (_ask(flow, step, prompt),))


def _critique(flow: Flow, step: WorkflowStep, sources: _Sources) -> PlannedStep:
    asks = []
    for constraint in resolve_constraints_for_step(step, flow.constraints):
        material = sources.text(constraint.id, constraint.source)
        prompt = critic_prompt(
            goal=flow.goal.text, artifact="", constraint=constraint, sources=material
        )
        agents, why = routed(flow, step, constraint)
        asks += [Ask(agent, why, len(prompt), constraint.id) for agent in agents]
    return PlannedStep(step, tuple(asks), again=len(asks))


def _adjudicate(flow: Flow, step: WorkflowStep, _sources: _Sources) -> PlannedStep:
    if flow.agent(step) == POLICY_JUDGE:
        return PlannedStep(step, ())
    config = flow.config.adjudication
    prompt = adjudicator_prompt(
        goal=flow.goal.text,
        artifact="",
        constraints=flow.constraints,
        critiques=(),
        block_on=config.block_on,
        tensions=[(t.axis, t.guidance, t.winner_on_conflict) for t in config.tensions],
        instructions=config.instructions,
    )
    return PlannedStep(step, (_ask(flow, step, prompt),), again=1)


def _refine(flow: Flow, step: WorkflowStep, sources: _Sources) -> PlannedStep:
    if in_words(flow, step):
        material = sources.text("", flow.goal.source)
        # There will be a bill, and what is said about it counts.
        prompt = author_prompt(flow, step, sources=material, bill_of_work="-")
    else:
        prompt = refinement_prompt(filename="artifact.md", bill_of_work="", goal=flow.goal.text)
    return PlannedStep(step, (_ask(flow, step, prompt),), again=step.validation_retries)


_PLANNED: Mapping[StepKind, Callable[[Flow, WorkflowStep, _Sources], PlannedStep]] = {
    StepKind.GENERATE: _generate,
    StepKind.CRITIQUE: _critique,
    StepKind.ADJUDICATE: _adjudicate,
    StepKind.REFINE: _refine,
}


def _ask(flow: Flow, step: WorkflowStep, prompt: str) -> Ask:
    why = "the step's agent" if step.agent else "the default agent"
    return Ask(flow.agent(step), why, len(prompt))


def _row(planned: PlannedStep) -> tuple[object, ...]:
    step = planned.step
    agents = ", ".join(dict.fromkeys(ask.agent for ask in planned.asks)) or step.agent or "-"
    said = []
    for name, value in planned.about.items():
        if value:
            said.append(f"{name} {', '.join(value) if isinstance(value, list) else value}")
    sizes = [ask.prompt_chars for ask in planned.asks]
    span = "-" if not sizes else f"{min(sizes):,}"
    if sizes and max(sizes) != min(sizes):
        span = f"{span}-{max(sizes):,}"
    calls = str(len(planned.asks)) + (f" (+{planned.again})" if planned.again else "")
    what = "; ".join(said)
    return step.id, step.step.value, agents, step.model or "-", calls, span, what
