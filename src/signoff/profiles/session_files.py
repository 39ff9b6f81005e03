"""The files of a session, by their paths inside the run directory."""

from __future__ import annotations

from collections.abc import Mapping

from signoff.profiles.phases import WorkflowPhase, WorkflowStage

STANDARDS = "standards-bundle.md"
PLAN = "plan.md"
REVISION_ISSUES = "revision-issues.md"
"""In the folder of a round: which findings the reviser accepted, and which not."""

NOUNS: Mapping[WorkflowPhase, str] = {
    WorkflowPhase.PLAN: "planning",
    WorkflowPhase.GENERATE: "generation",
    WorkflowPhase.REVIEW: "review",
    WorkflowPhase.REVISE: "revision",
}
"""The phases that have a prompt and a response, as files and methods of profiles name them."""


def stage_path(phase: WorkflowPhase, stage: WorkflowStage, iteration: int) -> str:
    """Returns the path of a prompt or a response."""
    return f"{iteration_folder(iteration)}/{NOUNS[phase]}-{stage.value}.md"


def prompt_path(phase: WorkflowPhase, iteration: int, *, again: bool) -> str:
    """Returns the path of what a provider is asked; `again` if its response was rejected."""
    path = stage_path(phase, WorkflowStage.PROMPT, iteration)
    return path.replace("-prompt.", "-retry-prompt.") if again else path


def code_folder(iteration: int) -> str:
    """Returns the folder of the generated files."""
    return f"{iteration_folder(iteration)}/code"


def revision_issues_path(iteration: int) -> str:
    """Returns the path of the reviser's notes on the findings."""
    return f"{iteration_folder(iteration)}/{REVISION_ISSUES}"


def iteration_folder(iteration: int) -> str:
    """Returns the folder of one round."""
    return f"iteration-{iteration}"
