"""What a flow sends to its agents, step by step, without sending it.

The goal, the constraints and the sources are real. The artifact and what reviewers say about it
are those of a run, in the state before the latest visit of each step; without a run, texts in
parentheses take their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from signoff.core.effects import ProductPrompt
from signoff.core.workflow import Workflow
from signoff.errors import UnknownName
from signoff.flows.constraint_file import constraint_from_dict
from signoff.flows.flow import Flow
from signoff.flows.replay import RecordedVisit
from signoff.flows.sections import Goal
from signoff.flows.serialize import config_from_json
from signoff.flows.state import FlowState, critiques_in_scope, read
from signoff.flows.step import POLICY_JUDGE, StepKind, WorkflowStep
from signoff.flows.steps.adjudicate import judge_prompt
from signoff.flows.steps.critic import review_prompt
from signoff.flows.steps.generate import draft_prompt
from signoff.flows.steps.material import material_text, read_material
from signoff.flows.steps.refine import revision_prompt
from signoff.flows.steps.work_order import bill_of
from signoff.notation import CompileContext
from signoff.review.adjudication import Adjudication, Verdict
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.policy import for_judge
from signoff.review.sources import script_section

GOAL, ARTIFACT = "(the goal)", "(the artifact)"
FINDING, WORK_ORDER = "(a finding of a critic)", "(the work order of the judge)"
OUTPUT = "(the output of the script)"


@dataclass(frozen=True)
class PromptPreview:
    """One prompt that a step sends."""

    step: str
    kind: StepKind
    agents: tuple[str, ...]
    prompt: ProductPrompt
    constraint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "step": self.step,
            "kind": self.kind.value,
            "agents": list(self.agents),
            **({"constraint": self.constraint} if self.constraint else {}),
            "system": self.prompt.system,
            "prompt": str(self.prompt),
            "schema": self.prompt.schema,
        }


def previews_of_flow(workflow: Workflow, step: str | None = None) -> list[PromptPreview]:
    """Returns the prompts of a compiled flow, or of one of its steps."""
    handler = next(iter(workflow.steps.values())).handler
    flow: Flow = handler.flow  # type: ignore[union-attr]  # every step of a flow has one
    if not flow.goal.text:
        flow = replace(flow, goal=Goal(goal=GOAL, source=flow.goal.source))
    sources = {name: _material(flow, name) for name in flow.sources}
    # A first draft has no work order yet, but every other step has an artifact.
    first: dict[str, Any] = {"sources": sources}
    verdict = Adjudication(1, Verdict.REWRITE, bill_of_work=WORK_ORDER)
    critiques = list(_placeholder_critiques(flow))
    later = {
        **first,
        "artifact": ARTIFACT,
        "last_adjudication": verdict.to_json(),
        "unadjudicated_critiques": critiques,
        "critiques_by_step": {"": critiques},
    }
    states = {
        each.id: (1, first if each.step is StepKind.GENERATE else later)
        for each in flow.config.workflow
    }
    return [each for one in _selected(flow, step) for each in _previews(flow, one, *states[one.id])]


def previews_of_run(
    flow: Flow, history: Iterable[RecordedVisit], step: str | None = None
) -> list[PromptPreview]:
    """Returns the prompts of the latest visit of each step in a run, or of one step."""
    visits = list(history)
    # The sources are read by the first step, so the state before it does not have them yet.
    sources: Mapping[str, str] = next(
        (v.after["sources"] for v in visits if v.after.get("sources")), {}
    )
    latest = {v.step: (v.iteration, {"sources": sources, **v.before}) for v in visits}
    return [
        each
        for one in _selected(flow, step)
        if one.id in latest
        for each in _previews(flow, one, *latest[one.id])
    ]


def stored_flow(source: Mapping[str, Any], context: CompileContext) -> Flow:
    """Returns the flow that a run was started with, from its stored definition."""
    given = source.get("given") or {}
    return Flow(
        config=config_from_json(source["flow"]),
        goal=Goal.model_validate(source["goal"]),
        constraints=tuple(constraint_from_dict(each) for each in source["constraints"]),
        root=context.root,
        home=context.home,
        default_agent=given.get("default_agent") or context.default_agent,
        installed=tuple(given.get("found") or context.installed),
        agents=context.agents,
        prompts=source.get("prompts") or {},
    )


def _selected(flow: Flow, step: str | None) -> list[WorkflowStep]:
    steps = {each.id: each for each in flow.config.workflow}
    if step is None:
        return list(steps.values())
    if step not in steps:
        raise UnknownName("step", step, steps)
    return [steps[step]]


def _previews(
    flow: Flow, step: WorkflowStep, iteration: int, raw: Mapping[str, Any]
) -> Iterator[PromptPreview]:
    state = FlowState(raw)
    if step.step is StepKind.CRITIQUE:
        for constraint in flow.selected(step):
            agents = flow.reviewers(step, constraint)
            analysis = OUTPUT if constraint.script.strip() and flow.allow_scripts else ""
            prompt = review_prompt(flow, state, agents[0], [(constraint, analysis)])
            yield PromptPreview(step.id, step.step, agents, prompt, constraint.id)
    elif flow.agent(step) != POLICY_JUDGE:
        prompt = _prompt(flow, step, state, iteration)
        yield PromptPreview(step.id, step.step, (flow.agent(step),), prompt)


def _prompt(flow: Flow, step: WorkflowStep, state: FlowState, iteration: int) -> ProductPrompt:
    match step.step:
        case StepKind.GENERATE:
            return draft_prompt(flow, step, state, iteration)
        case StepKind.ADJUDICATE:
            critiques = for_judge(read(critiques_in_scope(state.raw, step.scope)))
            return judge_prompt(flow, step, state, critiques, iteration)
        case _:
            return revision_prompt(flow, step, state, state.artifact, bill_of(state), iteration)


def _material(flow: Flow, name: str) -> str:
    found = read_material(flow, flow.sources[name], run="NAME")
    outputs = [script_section(script.name, OUTPUT) for script in found.scripts]
    return material_text(found, outputs)


def _placeholder_critiques(flow: Flow) -> Iterator[dict[str, Any]]:
    """Yields one critique, so that the prompt of a judge shows how it gets them."""
    for constraint in flow.constraints[:1]:
        rule = constraint.rules[0].id if constraint.rules else ""
        issue = CritiqueIssue(f"{constraint.id}-001", rule, finding=FINDING, evidence="(a quote)")
        critique = Critique(constraint.id, "(a critic)", 1, Overall.FAIL, (issue,))
        yield {**critique.to_json(), "step": ""}
