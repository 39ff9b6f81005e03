"""Review flows: generate, critique, adjudicate and refine steps in YAML, compiled to a graph.

`load_flow("flow.yaml", goal="goal.yaml")` returns a workflow for `signoff.run`. The rest
is for programs that work with flows themselves.
"""

from __future__ import annotations

from pathlib import Path

from signoff.core.severity import IssueBehavior, Severity
from signoff.core.workflow import Workflow
from signoff.documents.source_file import SourceFile
from signoff.notation import CompileContext
from signoff.review.flow.compile import compile_file
from signoff.review.flow.model import (
    AdjudicationConfig,
    ConvergenceConfig,
    GenflowConfig,
    OutputConfig,
    WorkflowStep,
    get_behavior_for_severity,
    resolve_constraints_for_step,
)
from signoff.review.flow.reading import load_goal
from signoff.review.flow.sections import ConstraintConfig, Goal, load_constraints
from signoff.review.flow.state import get_critiques_for_scope
from signoff.review.flow.validation import validate_workflow
from signoff.review.pure.constraint import (
    Constraint,
    ConstraintBehavior,
    Rule,
    SourceBlock,
    compress_constraints,
)
from signoff.review.pure.critique import Adjudication, AdjudicationDecision, Critique, CritiqueIssue
from signoff.review.pure.findings import Finding, Ledger
from signoff.review.pure.parsing import parse_adjudication, parse_critique
from signoff.review.pure.prompts import (
    build_adjudicator_prompt,
    build_critic_prompt,
    build_generator_prompt,
    build_refinement_prompt,
)
from signoff.runtime.ports import Agent

__all__ = [
    "Adjudication",
    "AdjudicationConfig",
    "AdjudicationDecision",
    "Agent",
    "Constraint",
    "ConstraintBehavior",
    "ConstraintConfig",
    "ConvergenceConfig",
    "Critique",
    "CritiqueIssue",
    "Finding",
    "GenflowConfig",
    "Goal",
    "IssueBehavior",
    "Ledger",
    "OutputConfig",
    "Rule",
    "Severity",
    "SourceBlock",
    "WorkflowStep",
    "build_adjudicator_prompt",
    "build_critic_prompt",
    "build_generator_prompt",
    "build_refinement_prompt",
    "compress_constraints",
    "get_behavior_for_severity",
    "get_critiques_for_scope",
    "load_constraints",
    "load_flow",
    "load_goal",
    "parse_adjudication",
    "parse_critique",
    "resolve_constraints_for_step",
    "validate_workflow",
]


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
    folder = Path(root) if root is not None else Path.cwd()
    options = {"goal": str(goal) if goal else None, "allow_scripts": allow_scripts}
    context = CompileContext(folder, folder / ".signoff", options)
    return compile_file(SourceFile(folder / path), context)
