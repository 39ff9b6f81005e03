"""The approvers that come with signoff: two need no judgment, one asks an AI provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.profiles.judge import judge_prompt, read_approval
from signoff.profiles.model import ApprovalResult
from signoff.profiles.phases import ApprovalDecision, WorkflowPhase, WorkflowStage
from signoff.profiles.providers import AIProvider, ApprovalProvider


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
