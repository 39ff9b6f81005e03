"""Steps that prove they were done: definitions with conditions, gates, and a guarded database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff._lazy import exported_names

if TYPE_CHECKING:
    from signoff.contracts.checkpoint import Checkpoint as Checkpoint
    from signoff.contracts.checkpoint import GateDecision as GateDecision
    from signoff.contracts.checkpoint import ResumeContext as ResumeContext
    from signoff.contracts.checkpoint import resume_context as resume_context
    from signoff.contracts.definition import define_workflow as define_workflow
    from signoff.contracts.guarded_db.client import SafeDatabaseClient as SafeDatabaseClient
    from signoff.contracts.model import Condition as Condition
    from signoff.contracts.model import ConditionalNext as ConditionalNext
    from signoff.contracts.model import Database as Database
    from signoff.contracts.model import GateOption as GateOption
    from signoff.contracts.model import HumanGate as HumanGate
    from signoff.contracts.model import ParallelItemResult as ParallelItemResult
    from signoff.contracts.model import PendingRetry as PendingRetry
    from signoff.contracts.model import StepInput as StepInput
    from signoff.contracts.model import StepOutput as StepOutput
    from signoff.contracts.model import StepResult as StepResult
    from signoff.contracts.model import WorkflowDefinition as WorkflowDefinition
    from signoff.contracts.model import WorkflowStep as WorkflowStep
    from signoff.contracts.work import StepContext as StepContext

__all__, __getattr__, __dir__ = exported_names(__name__)
