"""What a flow sends to its agents, step by step, without sending it.

The goal, the constraints and the sources are real. Texts in parentheses stand for the artifact and
for what reviewers say about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from signoff.core.effects import ProductPrompt
from signoff.core.workflow import Workflow
from signoff.errors import UnknownName
from signoff.flows.flow import Flow
from signoff.flows.sections import Goal
from signoff.flows.state import FlowState, critiques_in_scope, read, stored
from signoff.flows.step import POLICY_JUDGE, StepKind, WorkflowStep
from signoff.flows.steps.adjudicate import judge_prompt
from signoff.flows.steps.critic import review_prompt
from signoff.flows.steps.generate import draft_prompt
from signoff.flows.steps.material import material_text, read_material
from signoff.flows.steps.refine import revision_prompt
from signoff.flows.steps.verify import Verifier
from signoff.flows.steps.work_order import bill_of
from signoff.review.adjudication import Adjudication, Verdict
from signoff.review.constraint import Constraint
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.policy import for_judge
from signoff.review.sources import script_section

GOAL, ARTIFACT = "(the goal)", "(the artifact)"
FINDING, WORK_ORDER = "(a finding of a critic)", "(the work order of the judge)"
OUTPUT = "(the output of the script)"
ROUND = 1


@dataclass(frozen=True)
class PromptPreview:
    """One prompt that a step sends."""

    step: str
    kind: str
    agents: tuple[str, ...]
    prompt: ProductPrompt
    constraint: str | None = None

    @property
    def heading(self) -> str:
        """What it is about, in a line."""
        about = f", {self.constraint}" if self.constraint else ""
        return f"{self.step}: {self.kind} by {', '.join(self.agents)}{about}"

    @property
    def system(self) -> str | None:
        """The system prompt."""
        return self.prompt.system

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema that the answer has to match, if there is one."""
        return self.prompt.schema

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "step": self.step,
            "kind": self.kind,
            "agents": list(self.agents),
            **({"constraint": self.constraint} if self.constraint else {}),
            "system": self.system,
            "prompt": str(self.prompt),
            "schema": self.schema,
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
    verdict = Adjudication(ROUND, Verdict.REWRITE, bill_of_work=WORK_ORDER)
    critiques = [stored(_placeholder_critique(each), "") for each in flow.constraints[:1]]
    later = {
        **first,
        "artifact": ARTIFACT,
        "last_adjudication": verdict.to_json(),
        "unadjudicated_critiques": critiques,
        "critiques_by_step": {"": critiques},
    }
    return [
        each
        for one in _selected(flow, step)
        for each in _previews(flow, one, first if one.step is StepKind.GENERATE else later)
    ]


def _selected(flow: Flow, step: str | None) -> list[WorkflowStep]:
    steps = {each.id: each for each in flow.config.workflow}
    if step is None:
        return list(steps.values())
    if step not in steps:
        raise UnknownName("step", step, steps)
    return [steps[step]]


def _previews(flow: Flow, step: WorkflowStep, raw: Mapping[str, Any]) -> Iterator[PromptPreview]:
    state = FlowState(raw)
    if step.step is StepKind.CRITIQUE:
        for constraint in flow.selected(step):
            agents = flow.reviewers(step, constraint)
            analysis = OUTPUT if constraint.script.strip() and flow.allow_scripts else ""
            prompt = review_prompt(flow, state, agents[0], [(constraint, analysis)])
            yield PromptPreview(step.id, step.step.value, agents, prompt, constraint.id)
        yield from _confirmation(flow, step, state)
    elif step.step is not StepKind.SIGN_OFF and flow.agent(step) != POLICY_JUDGE:
        prompt = _prompt(flow, step, state)
        yield PromptPreview(step.id, step.step.value, (flow.agent(step),), prompt)


def _confirmation(flow: Flow, step: WorkflowStep, state: FlowState) -> Iterator[PromptPreview]:
    config, constraints = flow.config.verify, flow.selected(step)
    if config is None or not constraints:
        return
    (issue,) = _placeholder_critique(constraints[0]).issues
    verifier = Verifier(flow, state, config)
    prompt = verifier.prompt(issue, constraints[0])
    yield PromptPreview(step.id, "verify", (config.agent,), prompt, constraints[0].id)


def _prompt(flow: Flow, step: WorkflowStep, state: FlowState) -> ProductPrompt:
    match step.step:
        case StepKind.GENERATE:
            return draft_prompt(flow, step, state, ROUND)
        case StepKind.ADJUDICATE:
            critiques = for_judge(read(critiques_in_scope(state.raw, step.scope)))
            return judge_prompt(flow, step, state, critiques, ROUND)
        case _:
            return revision_prompt(flow, step, state, state.artifact, bill_of(state), ROUND)


def _material(flow: Flow, name: str) -> str:
    found = read_material(flow, flow.sources[name], run="NAME")
    outputs = [script_section(script.name, OUTPUT) for script in found.scripts]
    return material_text(found, outputs)


def _placeholder_critique(constraint: Constraint) -> Critique:
    """Returns a critique with one issue, to show how a judge or a verifier gets it."""
    rule = constraint.rules[0].id if constraint.rules else ""
    issue = CritiqueIssue(f"{constraint.id}-001", rule, finding=FINDING, evidence="(a quote)")
    return Critique(constraint.id, "(a critic)", ROUND, Overall.FAIL, (issue,))
