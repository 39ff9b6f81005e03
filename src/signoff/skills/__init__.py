"""Skills: procedures that a program hands to a coding agent one step at a time.

A skill is a module that assigns a `Workflow` to `WORKFLOW`. Names are loaded when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff._lazy import exported_names

if TYPE_CHECKING:
    from signoff.core.args import Arg as Arg
    from signoff.core.args import BoundedInt as BoundedInt
    from signoff.core.args import ChoiceSet as ChoiceSet
    from signoff.core.args import Constant as Constant
    from signoff.core.args import Domain as Domain
    from signoff.core.context import StepContext as StepContext
    from signoff.core.outcome import Outcome as Outcome
    from signoff.core.questions import UserQuestion as UserQuestion
    from signoff.core.step import StepDef as StepDef
    from signoff.core.step_output import StepOutput as StepOutput
    from signoff.core.workflow import Workflow as Workflow
    from signoff.runtime.sub_agents import SUB_AGENT_QUESTION_FORMAT as SUB_AGENT_QUESTION_FORMAT
    from signoff.runtime.sub_agents import AgentRole as AgentRole
    from signoff.runtime.sub_agents import Dispatch as Dispatch
    from signoff.runtime.sub_agents import parse_questions as parse_questions
    from signoff.skills.discovery import discover_workflows as discover_workflows
    from signoff.skills.program import main as main
    from signoff.skills.qr import QRGate as QRGate
    from signoff.skills.resources import FileResourceProvider as FileResourceProvider
    from signoff.skills.resources import ResourceProvider as ResourceProvider
    from signoff.skills.state import STATE_DIR as STATE_DIR
    from signoff.skills.state import state_directory as state_directory
    from signoff.skills.step_text import command_text as command_text
    from signoff.skills.step_text import format_step as format_step
    from signoff.skills.types import QUESTION_RELAY_HANDLER as QUESTION_RELAY_HANDLER
    from signoff.skills.types import Confidence as Confidence
    from signoff.skills.types import DocumentAvailability as DocumentAvailability
    from signoff.skills.types import LoopState as LoopState
    from signoff.skills.types import QRStatus as QRStatus

__all__, __getattr__, __dir__ = exported_names(__name__)
