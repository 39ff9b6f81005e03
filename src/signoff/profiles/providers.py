"""Providers: what they implement, the approvers that are shipped, and providers as agents.

They respond to prompts, judge files and collect standards.
Unlike profiles, providers may read files, and an `AIProvider` may write them.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, TypeVar

from signoff.agents.base import health_of
from signoff.agents.kinds import WITHOUT_SETTINGS
from signoff.core.effects import AgentRequest, EffectId, ProductPrompt, Reply
from signoff.core.errors import AgentTimeout, ProviderError
from signoff.documents.named_texts import read_texts
from signoff.profiles.code_files import fenced
from signoff.profiles.model import AIProviderResult, ApprovalResult
from signoff.profiles.transitions import ApprovalDecision, WorkflowPhase, WorkflowStage
from signoff.review.pure.decision import read_decision
from signoff.review.pure.reply_text import Material
from signoff.runtime.handlers import on_thread
from signoff.runtime.ports import Agent, Call, Capabilities, capabilities_of


class FsAbility(StrEnum):
    """What a provider can do with files; decides what the end of a prompt asks for."""

    LOCAL_WRITE = "local-write"
    """It writes the response file itself."""
    LOCAL_READ = "local-read"
    """It reads files, but answers in text."""
    WRITE_ONLY = "write-only"
    """It offers files for download, like a chat in a browser."""
    NONE = "none"
    """It gets and returns text only."""


class AIProvider(ABC):
    """Responds to the prompts of a session."""

    description: ClassVar[str] = ""
    """One line for listings."""
    fs_ability: ClassVar[FsAbility] = FsAbility.NONE
    """What it can do with files, unless the user says otherwise."""
    timeout_seconds: ClassVar[float] = 1800.0
    """How long a response may take; then the call fails like that of an agent."""

    @abstractmethod
    def validate(self) -> None:
        """Raises `ProviderError` if it cannot be used, for example without a key."""

    @abstractmethod
    def generate(self, prompt: str, context: Mapping[str, Any]) -> AIProviderResult | None:
        """Returns its response; None leaves it to a human to write the response file."""


class ApprovalProvider(ABC):
    """Judges a prompt or a response."""

    description: ClassVar[str] = ""
    """One line for listings."""
    timeout_seconds: ClassVar[float] = 600.0
    """How long a decision may take; then the session waits for a human."""

    @abstractmethod
    def evaluate(
        self,
        *,
        phase: WorkflowPhase,
        stage: WorkflowStage,
        files: Mapping[str, str | None],
        context: Mapping[str, Any],
    ) -> ApprovalResult:
        """Returns its decision about a stage.

        `files` maps the paths of the files it needs to their texts, None for a missing file.
        """


class StandardsProvider(ABC):
    """Collects the standards that a session has to follow."""

    description: ClassVar[str] = ""
    """One line for listings."""
    warnings: Sequence[str] = ()
    """What the user should know about the last bundle."""

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, folder: Path | None = None
    ) -> None:
        """`config` comes from the profile; relative paths in it start in `folder`."""
        self.config: Mapping[str, Any] = config or {}
        self.folder = folder if folder is not None else Path()

    @abstractmethod
    def validate(self) -> None:
        """Raises `ProviderError` if its configuration cannot be used."""

    @abstractmethod
    def create_bundle(
        self,
        context: Mapping[str, Any],
        connection_timeout: float | None = None,
        response_timeout: float | None = None,
    ) -> str:
        """Returns all standards for a context as one text; raises `ProviderError`.

        The timeouts are in seconds; None leaves them to the provider.
        """


# The approvers that come with signoff: two need no judgment, one asks an AI provider.
#
# The prompt that asks about a stage is also sent to agents that approve.


LONGEST_FILE = 50_000
"""Characters of one file that an approver gets."""
LONGEST_MATERIAL = 200_000
"""Characters of all files that an approver gets."""

_TEXTS = Path(__file__).with_name("prompts.md")


class ManualApprovalProvider(ApprovalProvider):
    """Leaves every decision to a human."""

    description = "a human decides"

    def evaluate(self, **_stage: Any) -> ApprovalResult:
        """Returns PENDING."""
        return ApprovalResult(decision=ApprovalDecision.PENDING)


class SkipApprovalProvider(ApprovalProvider):
    """Approves everything."""

    description = "approves without looking"

    def evaluate(self, **_stage: Any) -> ApprovalResult:
        """Returns APPROVED."""
        return ApprovalResult(decision=ApprovalDecision.APPROVED)


class AIApprovalProvider(ApprovalProvider):
    """Lets any AI provider approve: asks it the stage's question and reads its decision."""

    description = "asks an AI provider"

    def __init__(
        self, provider: AIProvider, *, allow_rewrite: bool = False, criteria: str = ""
    ) -> None:
        """`criteria` is what it has to check besides the stage's own question."""
        self._provider = provider
        self._allow_rewrite = allow_rewrite
        self._criteria = criteria

    def evaluate(
        self,
        *,
        phase: WorkflowPhase,
        stage: WorkflowStage,
        files: Mapping[str, str | None],
        context: Mapping[str, Any],
    ) -> ApprovalResult:
        """Returns the provider's decision; everything that is not clearly a yes is a rejection."""
        prompt = judge_prompt(
            phase, stage, files, criteria=self._criteria, allow_rewrite=self._allow_rewrite
        )
        result = self._provider.generate(prompt, context)
        if result is None:
            kind = type(self._provider).__name__
            raise TypeError(f"{kind}.generate() returned None, and a gate needs a decision")
        return read_approval(result.response or "", files, allow_rewrite=self._allow_rewrite)


def judge_prompt(
    phase: WorkflowPhase,
    stage: WorkflowStage,
    files: Mapping[str, str | None],
    *,
    criteria: str = "",
    allow_rewrite: bool = False,
) -> ProductPrompt:
    """Returns the prompt for the approver of a stage; the first file is the one it judges."""
    texts = read_texts(_TEXTS)
    question = texts[f"question-{'prompt' if stage is WorkflowStage.PROMPT else phase.value}"]
    present = {path: text for path, text in files.items() if text is not None}
    judged = next(iter(present), "")
    parts = [
        f"You decide whether a step of a workflow may continue. You judge the file `{judged}`.",
        question,
        *([f"Also check:\n\n{criteria.strip()}"] if criteria.strip() else []),
        texts["material"],
        *(
            f"`{path}`:\n\n{fenced(text)}".rstrip("\n")
            for path, text in _within_limits(present).items()
        ),
        f"{texts['answer']}\n{texts['rewrite']}" if allow_rewrite else texts["answer"],
    ]
    material = [phase.value, stage.value, criteria, allow_rewrite, present]
    return ProductPrompt("\n\n".join(parts) + "\n", material)


def read_approval(
    reply: str, files: Mapping[str, str | None], *, allow_rewrite: bool = False
) -> ApprovalResult:
    """Returns the decision in the reply to that prompt."""
    # A file may contain the words of a decision. Words that are quoted from the material do not
    # count as the approver's own.
    material = Material(*(text for text in files.values() if text))
    decision = read_decision(reply, allow_rewrite=allow_rewrite, material=material)
    return ApprovalResult(
        decision=ApprovalDecision.APPROVED if decision.approved else ApprovalDecision.REJECTED,
        feedback=decision.feedback,
        suggested_content=decision.suggested_content,
    )


def _within_limits(files: Mapping[str, str]) -> dict[str, str]:
    """Returns the files as far as an approver gets them; the first ones have precedence."""
    # Cut and said so: a judge that believes it has read everything would approve what it has not
    # seen.
    left = LONGEST_MATERIAL
    shown = {}
    for path, text in files.items():
        most = min(LONGEST_FILE, left)
        cut = len(text) > most
        shown[path] = (
            f"{text[:most]}\n[cut here: {len(text) - most:,} more characters]" if cut else text
        )
        left -= min(len(text), most)
    return shown


# Registered providers and approvers as agents, so that their calls are recorded and counted.
#
# The other way round, agents that need no settings are providers for programs that ask one outside
# a session.


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
