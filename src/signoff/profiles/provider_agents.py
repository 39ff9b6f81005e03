"""Registered providers and approvers as agents, so that their calls are recorded and counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from signoff.core.effects import AgentRequest, Reply
from signoff.errors import AgentTimeout
from signoff.profiles.phases import WorkflowPhase, WorkflowStage
from signoff.profiles.providers import AIProvider, ApprovalProvider
from signoff.runtime.from_thread import on_thread
from signoff.runtime.ports import Call, Capabilities

T = TypeVar("T")

_FILES, _BY_HAND = "files", "by_hand"


@dataclass(frozen=True)
class ProviderAgent:
    """Answers with what a registered provider generates."""

    key: str
    provider: AIProvider
    capabilities = Capabilities()

    async def ask(self, request: AgentRequest, _call: Call) -> Reply:
        """Asks the provider, in a thread because it may block."""
        context = {**request.about.get("context", {}), **_without_context(request.about)}
        generate = partial(self.provider.generate, request.prompt, context)
        result = await _in_time(generate, self.provider.timeout_seconds, "respond")
        if result is None:
            return Reply("", value={_BY_HAND: True})
        # Imported here because it takes longer than a step by hand, which reads files of replies.
        from signoff.profiles.model import AIProviderResult

        if not isinstance(result, AIProviderResult):
            raise TypeError(
                f"AI provider {self.key!r} must return an AIProviderResult, not {result!r:.80}"
            )
        return Reply(result.response or "", value={_FILES: result.files} if result.files else None)


@dataclass(frozen=True)
class ApproverAgent:
    """Answers with the decision of a registered approver, as JSON."""

    key: str
    approver: ApprovalProvider
    capabilities = Capabilities()

    async def ask(self, request: AgentRequest, _call: Call) -> Reply:
        """Asks the approver, in a thread because it may block."""
        about = request.about
        evaluate = partial(
            self.approver.evaluate,
            phase=WorkflowPhase(about["phase"]),
            stage=WorkflowStage(about["stage"]),
            files=about["files"],
            context=about["context"],
        )
        result = await _in_time(evaluate, self.approver.timeout_seconds, "decide")
        from signoff.profiles.model import ApprovalResult

        if not isinstance(result, ApprovalResult):
            raise TypeError(
                f"approval provider {self.key!r} must return an ApprovalResult, not {result!r:.80}"
            )
        return Reply(result.model_dump_json())


def files_in(reply: Reply) -> dict[str, str | None]:
    """Returns the files that came with a provider's response, apart from its text."""
    value = reply.value
    return dict(value.get(_FILES, {})) if isinstance(value, dict) else {}


def by_hand(reply: Reply) -> bool:
    """Tells whether the provider leaves the response to a human."""
    return isinstance(reply.value, dict) and reply.value.get(_BY_HAND) is True


async def _in_time(call: Callable[[], T], seconds: float, verb: str) -> T:
    """Returns the result of a call in a thread, which is abandoned when its time is up."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await on_thread(call)
    except TimeoutError:
        # The provider's own code may time out, too, and knows better what was too slow.
        if not limit.expired():
            raise
        raise AgentTimeout(f"it did not {verb} within {seconds:g} seconds") from None


def _without_context(about: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if name != "context"}
