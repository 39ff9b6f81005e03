"""The approvers that come with signoff: two need no judgment, one asks an AI provider.

The prompt that asks about a stage is also sent to agents that approve.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signoff.core.effects import ProductPrompt
from signoff.documents.named_texts import read_texts
from signoff.profiles.code_files import fenced
from signoff.profiles.model import ApprovalResult
from signoff.profiles.providers import AIProvider, ApprovalProvider
from signoff.profiles.transitions import ApprovalDecision, WorkflowPhase, WorkflowStage
from signoff.review.decision import read_decision
from signoff.review.reply_text import Material

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
