"""Profiles: plan, generate, review and revise, with an approval gate at every stage.

The author of a profile extends `WorkflowProfile`. Names are loaded when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff._lazy import exported_names

if TYPE_CHECKING:
    from signoff.profiles.code_files import find_code_files as find_code_files
    from signoff.profiles.code_files import format_code_files as format_code_files
    from signoff.profiles.factories import AIProviderFactory as AIProviderFactory
    from signoff.profiles.factories import ApprovalProviderFactory as ApprovalProviderFactory
    from signoff.profiles.factories import ProfileFactory as ProfileFactory
    from signoff.profiles.factories import StandardsProviderFactory as StandardsProviderFactory
    from signoff.profiles.model import AIProviderResult as AIProviderResult
    from signoff.profiles.model import ApprovalResult as ApprovalResult
    from signoff.profiles.model import Artifact as Artifact
    from signoff.profiles.model import PhaseTransition as PhaseTransition
    from signoff.profiles.model import ProcessingResult as ProcessingResult
    from signoff.profiles.model import WorkflowState as WorkflowState
    from signoff.profiles.model import WriteOp as WriteOp
    from signoff.profiles.model import WritePlan as WritePlan
    from signoff.profiles.profile import TemplateProfile as TemplateProfile
    from signoff.profiles.profile import WorkflowProfile as WorkflowProfile
    from signoff.profiles.profile import render_template as render_template
    from signoff.profiles.providers import AIApprovalProvider as AIApprovalProvider
    from signoff.profiles.providers import AIProvider as AIProvider
    from signoff.profiles.providers import ApprovalProvider as ApprovalProvider
    from signoff.profiles.providers import FsAbility as FsAbility
    from signoff.profiles.providers import StandardsProvider as StandardsProvider
    from signoff.profiles.responses import ReviewMeta as ReviewMeta
    from signoff.profiles.responses import parse_review_meta as parse_review_meta
    from signoff.profiles.transitions import Action as Action
    from signoff.profiles.transitions import ApprovalDecision as ApprovalDecision
    from signoff.profiles.transitions import TransitionResult as TransitionResult
    from signoff.profiles.transitions import TransitionTable as TransitionTable
    from signoff.profiles.transitions import WorkflowPhase as WorkflowPhase
    from signoff.profiles.transitions import WorkflowStage as WorkflowStage
    from signoff.profiles.transitions import WorkflowStatus as WorkflowStatus

__all__, __getattr__, __dir__ = exported_names(__name__)
