"""Registered providers and approvers as agents, so that their calls are recorded and counted.

The other way round, agents that need no settings are providers for programs that ask one outside
a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

from signoff.agents.base import health_of
from signoff.agents.kinds import WITHOUT_SETTINGS
from signoff.core.effects import AgentRequest, EffectId, Reply
from signoff.errors import AgentTimeout, ProviderError
from signoff.profiles.model import AIProviderResult, ApprovalResult
from signoff.profiles.providers import AIProvider, ApprovalProvider, FsAbility
from signoff.profiles.transitions import WorkflowPhase, WorkflowStage
from signoff.runtime.handlers import on_thread
from signoff.runtime.ports import Agent, Call, Capabilities, capabilities_of

T = TypeVar("T")

_FILES, _BY_HAND = "files", "by_hand"


@dataclass(frozen=True)
class ProviderAgent:
    """Answers with what a registered provider generates."""

    key: str
    provider: AIProvider
    capabilities = Capabilities()

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Asks the provider, in a thread because it may block."""
        about = {**request.about}
        values, files = about.pop("context", {}), about.pop("files", {})
        paths = {name: str(Path(call.directory, path)) for name, path in files.items()}
        context = {**values, **about, "session_dir": call.directory, **paths}
        generate = partial(self.provider.generate, request.prompt, context)
        # In a thread: a provider is ordinary code that may block, and other steps must go on
        # meanwhile.
        result = await _in_time(generate, self.provider.timeout_seconds, "respond")
        if result is None:
            return Reply("", value={_BY_HAND: True})
        # Checked here and not where it is used, because the author of the provider is the one who
        # can act on the error.
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
        if not isinstance(result, ApprovalResult):
            raise TypeError(
                f"approval provider {self.key!r} must return an ApprovalResult, not {result!r:.80}"
            )
        return Reply(result.model_dump_json())


class AgentProvider(AIProvider):
    """Responds with the answer of an agent.

    In a session agents are asked directly: their calls are recorded, and never repeated.
    """

    fs_ability = FsAbility.NONE

    def __init__(self, name: str) -> None:
        """`name` is one of the agents that need no settings."""
        self._name = name
        self._agent: Agent = resolve_name(WITHOUT_SETTINGS[name])()

    def validate(self) -> None:
        """Raises `ProviderError` if the agent is not ready."""
        health = asyncio.run(health_of(self._agent))
        if not health.ready:
            raise ProviderError(f"agent {self._name!r} is not ready: {health.detail}")

    def generate(self, prompt: str, context: Mapping[str, Any]) -> AIProviderResult | None:
        """Returns the agent's answer; None if a human answers for it."""
        if capabilities_of(self._agent).answered_by_human:
            return None
        request = AgentRequest(prompt, about={"context": dict(context)})
        call = Call(run="", effect=EffectId("provider#1"), agent=self._name)
        return AIProviderResult(response=asyncio.run(self._agent.ask(request, call)).text)


def files_in(reply: Reply) -> dict[str, str | None]:
    """Returns the files that came with a provider's response, apart from its text."""
    value = reply.value
    return dict(value.get(_FILES, {})) if isinstance(value, dict) else {}


def by_hand(reply: Reply) -> bool:
    """Tells whether the provider leaves the response to a human."""
    return isinstance(reply.value, dict) and reply.value.get(_BY_HAND) is True


async def _in_time(call: Callable[[], T], seconds: float, verb: str) -> T:
    """Returns the result of a call in a thread, which is abandoned when its time is up."""
    # The thread cannot be stopped. It is left behind, and its result is thrown away when it comes.
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await on_thread(call)
    except TimeoutError:
        # The provider's own code may time out, too, and knows better what was too slow.
        if not limit.expired():
            raise
        raise AgentTimeout(f"it did not {verb} within {seconds:g} seconds") from None
