"""signoff: a durable engine for AI work that has to be reviewed before it counts.

Names are loaded when they are first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff._lazy import exported_names
from signoff._version import __version__ as __version__

if TYPE_CHECKING:
    # running
    from signoff.api import answer as answer
    from signoff.api import resume as resume
    from signoff.api import resume_async as resume_async
    from signoff.api import resume_context as resume_context
    from signoff.api import run as run
    from signoff.api import run_async as run_async
    from signoff.runtime.result import RunResult as RunResult

    # isort: split
    # the graph
    from signoff.core.args import Arg as Arg
    from signoff.core.args import BoundedInt as BoundedInt
    from signoff.core.args import ChoiceSet as ChoiceSet
    from signoff.core.args import Constant as Constant
    from signoff.core.args import Param as Param
    from signoff.core.outcome import End as End
    from signoff.core.outcome import Outcome as Outcome
    from signoff.core.outcome import Status as Status
    from signoff.core.step import Condition as Condition
    from signoff.core.step import Edge as Edge
    from signoff.core.step import Gate as Gate
    from signoff.core.step import GateOption as GateOption
    from signoff.core.step import StepDef as StepDef
    from signoff.core.step_output import StepOutput as StepOutput
    from signoff.core.workflow import Workflow as Workflow
    from signoff.runtime.sub_agents import AgentRole as AgentRole
    from signoff.runtime.sub_agents import Dispatch as Dispatch

    # isort: split
    # inside a handler
    from signoff.core.checked import CheckedReply as CheckedReply
    from signoff.core.checked import Otherwise as Otherwise
    from signoff.core.context import Failure as Failure
    from signoff.core.context import StepContext as StepContext
    from signoff.core.delta import Append as Append
    from signoff.core.effects import AgentRequest as AgentRequest
    from signoff.core.effects import CommandResult as CommandResult
    from signoff.core.effects import OnCrash as OnCrash
    from signoff.core.effects import Reply as Reply
    from signoff.core.questions import Option as Option
    from signoff.core.questions import UserQuestion as UserQuestion
    from signoff.core.requests import Answer as Answer
    from signoff.core.requests import Approval as Approval
    from signoff.core.requests import Choice as Choice
    from signoff.core.requests import Question as Question
    from signoff.core.requests import Questions as Questions
    from signoff.core.requests import Response as Response

    # isort: split
    # what it may cost
    from signoff.core.spend import Limits as Limits
    from signoff.core.spend import Spend as Spend
    from signoff.core.spend import Usage as Usage

    # isort: split
    # errors
    from signoff.core.errors import SignoffError as SignoffError
    from signoff.core.errors import StepFailed as StepFailed

__all__, __getattr__, __dir__ = exported_names(__name__, "__version__")
