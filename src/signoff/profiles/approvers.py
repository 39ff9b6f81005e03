"""The two approvers that need no judgment."""

from __future__ import annotations

from typing import Any

from signoff.profiles.model import ApprovalDecision, ApprovalResult
from signoff.profiles.providers import ApprovalProvider


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
