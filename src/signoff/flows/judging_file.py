"""What a judge goes by and when a human is asked, as flow files spell it.

Two older keys mean the same as two newer ones; a file may use either, or both as long
as they agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, Strict

from signoff.documents.mistakes import Mistake
from signoff.flows.model import AdjudicationConfig, Tension, Trigger
from signoff.flows.sections import TEXT, FlowSection, Many
from signoff.review.severity import DEFAULT_BLOCK_ON, SEVERITIES, Severity

POLICIES: dict[str, tuple[Severity, ...]] = {
    "no_critical": (Severity.CRITICAL,),
    "no_critical_or_high": (Severity.CRITICAL, Severity.HIGH),
    "no_critical_and_no_high": (Severity.CRITICAL, Severity.HIGH),
    "all_resolved": tuple(Severity),
}
"""Names for what keeps an artifact from being approved."""

POLICY = f"one of: {', '.join(POLICIES)}"
SEVERITY_LIST = f"a list of: {SEVERITIES}"
TRIGGERS = f"a list of: {', '.join(get_args(Trigger))}"


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


SeverityName = Annotated[
    Severity, Strict(False), BeforeValidator(_upper), Field(description=f"one of: {SEVERITIES}")
]
"""A severity in upper or lower case."""
TriggerName = Annotated[Trigger, Field(description=f"one of: {', '.join(get_args(Trigger))}")]
PolicyName = Literal[
    "no_critical", "no_critical_or_high", "no_critical_and_no_high", "all_resolved"
]


class ApprovalSection(FlowSection):
    """What keeps an artifact from being approved."""

    block_on: Many[SeverityName] | None = Field(
        None, title="Severities that block", description=SEVERITY_LIST
    )
    policy: PolicyName | None = Field(None, title="The same by a name", description=POLICY)


class EscalationSection(FlowSection):
    """When a human is asked."""

    triggers: Many[TriggerName] | None = Field(
        None, title="What makes a human decide", description=TRIGGERS
    )
    thrash_threshold: int = Field(
        2,
        ge=1,
        le=10,
        title="After how many repetitions a pursued issue counts as thrashing",
        description="a whole number from 1 to 10",
    )


class AdjudicationSection(FlowSection):
    """What a judge goes by."""

    approval: ApprovalSection = Field(
        default_factory=ApprovalSection,
        title="What keeps an artifact from being approved",
        description="block_on or policy",
    )
    escalation: EscalationSection = Field(
        default_factory=EscalationSection,
        title="When a human is asked",
        description="triggers and thrash_threshold",
    )
    tensions: Many[Tension] = Field(
        (),
        title="Aims that pull apart",
        description="a list of {axis, guidance, winner_on_conflict}",
    )
    instructions: str | None = Field(
        None, title="Further instructions for the judge", description=TEXT
    )


class TerminationSection(FlowSection):
    """Older keys for `adjudication.approval` and `adjudication.escalation`."""

    approve_when: PolicyName | None = Field(
        None, title="What keeps an artifact from being approved", description=POLICY
    )
    escalate_on: Many[TriggerName] | None = Field(
        None, title="What makes a human decide", description=TRIGGERS
    )


Path = tuple[str, ...]


@dataclass(frozen=True)
class Judging:
    """What the newer and the older keys mean together."""

    adjudication: AdjudicationSection
    termination: TerminationSection

    def triggers(self) -> tuple[Trigger, ...] | None:
        """Returns what makes a human decide, or None where the file leaves it open."""
        return next(iter(self._trigger_lists().values()), None)

    def disagreements(self) -> list[Mistake]:
        """Returns where two keys contradict each other."""
        return [*_disagreement(self._block_lists()), *_disagreement(self._trigger_lists())]

    def config(self, default_triggers: tuple[Trigger, ...]) -> AdjudicationConfig:
        """Returns what a judge goes by."""
        triggers = self.triggers()
        return AdjudicationConfig(
            next(iter(self._block_lists().values()), DEFAULT_BLOCK_ON),
            default_triggers if triggers is None else triggers,
            self.adjudication.escalation.thrash_threshold,
            self.adjudication.tensions,
            self.adjudication.instructions or "",
        )

    def _block_lists(self) -> dict[Path, tuple[Severity, ...]]:
        approval, approve_when = self.adjudication.approval, self.termination.approve_when
        lists: dict[Path, tuple[Severity, ...]] = {}
        if approval.block_on is not None:
            ordered = tuple(severity for severity in Severity if severity in approval.block_on)
            lists["adjudication", "approval", "block_on"] = ordered
        if approval.policy is not None:
            lists["adjudication", "approval", "policy"] = POLICIES[approval.policy]
        if approve_when is not None:
            lists["termination", "approve_when"] = POLICIES[approve_when]
        return lists

    def _trigger_lists(self) -> dict[Path, tuple[Trigger, ...]]:
        lists = {
            ("adjudication", "escalation", "triggers"): self.adjudication.escalation.triggers,
            ("termination", "escalate_on"): self.termination.escalate_on,
        }
        return {
            path: tuple(dict.fromkeys(triggers))
            for path, triggers in lists.items()
            if triggers is not None
        }


def _disagreement(lists: Mapping[Path, tuple[Any, ...]]) -> list[Mistake]:
    if not lists:
        return []
    (first, expected), *others = lists.items()
    there = f"{'.'.join(first)} says {_listed(expected)}"
    return [
        Mistake(path, f"{'.'.join(path)} says {_listed(values)}, {there}", "keep one of them")
        for path, values in others
        if set(values) != set(expected)
    ]


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(str(value) for value in values) or "nothing"
