"""Review flows: generate, critique, adjudicate and refine steps in YAML, compiled to a graph.

`load_flow("flow.yaml", goal="goal.yaml")` returns a workflow for `signoff.run`. The rest
is for programs that work with flows themselves; names are loaded when they are used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from signoff._lazy import exported_names

if TYPE_CHECKING:
    from signoff.core.severity import IssueBehavior as IssueBehavior
    from signoff.core.severity import Severity as Severity
    from signoff.core.workflow import Workflow
    from signoff.flows.constraint_file import load_constraints as load_constraints
    from signoff.flows.model import AdjudicationConfig as AdjudicationConfig
    from signoff.flows.model import ConvergenceConfig as ConvergenceConfig
    from signoff.flows.model import GenflowConfig as GenflowConfig
    from signoff.flows.model import OutputConfig as OutputConfig
    from signoff.flows.model import WorkflowStep as WorkflowStep
    from signoff.flows.model import get_behavior_for_severity as get_behavior_for_severity
    from signoff.flows.model import resolve_constraints_for_step as resolve_constraints_for_step
    from signoff.flows.reading import load_goal as load_goal
    from signoff.flows.sections import ConstraintConfig as ConstraintConfig
    from signoff.flows.sections import Goal as Goal
    from signoff.flows.state import get_critiques_for_scope as get_critiques_for_scope
    from signoff.flows.validation import validate_workflow as validate_workflow
    from signoff.review.constraint import Constraint as Constraint
    from signoff.review.constraint import ConstraintBehavior as ConstraintBehavior
    from signoff.review.constraint import Rule as Rule
    from signoff.review.constraint import SourceBlock as SourceBlock
    from signoff.review.constraint import compress_constraints as compress_constraints
    from signoff.review.critique import Adjudication as Adjudication
    from signoff.review.critique import AdjudicationDecision as AdjudicationDecision
    from signoff.review.critique import Critique as Critique
    from signoff.review.critique import CritiqueIssue as CritiqueIssue
    from signoff.review.findings import Finding as Finding
    from signoff.review.findings import Ledger as Ledger
    from signoff.review.parsing import parse_adjudication as parse_adjudication
    from signoff.review.parsing import parse_critique as parse_critique
    from signoff.review.prompts import build_adjudicator_prompt as build_adjudicator_prompt
    from signoff.review.prompts import build_critic_prompt as build_critic_prompt
    from signoff.review.prompts import build_generator_prompt as build_generator_prompt
    from signoff.review.prompts import build_refinement_prompt as build_refinement_prompt
    from signoff.runtime.ports import Agent as Agent

__all__, __getattr__, __dir__ = exported_names(
    __name__,
    "load_flow",
    # `reading` sets their `from_dict`, so they are loaded through it.
    homes=dict.fromkeys(("GenflowConfig", "WorkflowStep"), "signoff.flows.reading"),
)


def load_flow(
    path: str | Path,
    *,
    goal: str | Path | None = None,
    root: str | Path | None = None,
    allow_scripts: bool = False,
) -> Workflow:
    """Returns the workflow of a flow file; raises `InvalidWorkflow` with every problem.

    `root` is the project's folder, by default the current one: paths start there, and its
    `.signoff/constraints` are the flow's unless it names others.
    """
    from signoff.documents.source_file import SourceFile
    from signoff.flows.compile import compile_file
    from signoff.notation import CompileContext

    folder = Path(root) if root is not None else Path.cwd()
    options = {"goal": str(goal) if goal else None, "allow_scripts": allow_scripts}
    context = CompileContext(folder, folder / ".signoff", options)
    return compile_file(SourceFile(folder / path), context)
