"""What a judge goes by and when a person is asked, as a flow file may say it.

Two older keys say what two newer ones say; a file may use either, or both as long as
they agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from signoff.documents.mistakes import Mistake
from signoff.documents.sections import Section
from signoff.flows.model import AdjudicationConfig, Tension, Trigger
from signoff.flows.sections import Word
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
    Literal["CRITICAL", "HIGH", "MEDIUM", "LOW"],
    BeforeValidator(_upper),
    Field(description=f"one of: {SEVERITIES}"),
]
TriggerName = Annotated[Trigger, Field(description=f"one of: {', '.join(get_args(Trigger))}")]
PolicyName = Literal[
    "no_critical", "no_critical_or_high", "no_critical_and_no_high", "all_resolved"
]


class ApprovalSection(Section):
    """What keeps an artifact from being approved."""

    block_on: list[SeverityName] | None = Field(
        None, title="Severities that block", description=SEVERITY_LIST
    )
    policy: PolicyName | None = Field(None, title="The same by a name", description=POLICY)


class EscalationSection(Section):
    """When a person is asked."""

    triggers: list[TriggerName] | None = Field(
        None, title="What makes a person decide", description=TRIGGERS
    )
    thrash_threshold: int = Field(
        2,
        ge=1,
        le=10,
        title="After how many repetitions a pursued issue counts as thrashing",
        description="a whole number from 1 to 10",
    )


class TensionSection(Section):
    """Two aims that pull apart."""

    axis: Word = Field(title="The two aims", description="a text, as in brevity vs completeness")
    guidance: str = Field("", title="Which way to lean", description="a text")
    winner_on_conflict: str = Field("", title="Which aim wins", description="a text")


class AdjudicationSection(Section):
    """What a judge goes by."""

    approval: ApprovalSection = Field(
        default_factory=ApprovalSection,
        title="What keeps an artifact from being approved",
        description="block_on or policy",
    )
    escalation: EscalationSection = Field(
        default_factory=EscalationSection,
        title="When a person is asked",
        description="triggers and thrash_threshold",
    )
    tensions: list[TensionSection] = Field(
        default_factory=list,
        title="Aims that pull apart",
        description="a list of {axis, guidance, winner_on_conflict}",
    )
    instructions: str | None = Field(
        None, title="What else the judge is told", description="a text"
    )


class TerminationSection(Section):
    """Older words for `adjudication.approval` and `adjudication.escalation`."""

    approve_when: PolicyName | None = Field(
        None, title="What keeps an artifact from being approved", description=POLICY
    )
    escalate_on: list[TriggerName] | None = Field(
        None, title="What makes a person decide", description=TRIGGERS
    )


@dataclass(frozen=True)
class Judging:
    """What the newer and the older keys say together."""

    adjudication: AdjudicationSection
    termination: TerminationSection

    def block_on(self) -> tuple[Severity, ...] | None:
        """Returns what blocks approval as the file says it, or None."""
        return next((said for _, said in self._blocking()), None)

    def triggers(self) -> tuple[Trigger, ...] | None:
        """Returns what makes a person decide as the file says it, or None."""
        return next((said for _, said in self._triggering()), None)

    def disagreements(self) -> list[Mistake]:
        """Returns where two keys say the same thing differently."""
        return [*_disagreement(self._blocking()), *_disagreement(self._triggering())]

    def value(self, default_triggers: tuple[Trigger, ...]) -> AdjudicationConfig:
        """Returns what a judge goes by."""
        block_on, triggers = self.block_on(), self.triggers()
        return AdjudicationConfig(
            DEFAULT_BLOCK_ON if block_on is None else block_on,
            default_triggers if triggers is None else triggers,
            self.adjudication.escalation.thrash_threshold,
            tuple(Tension(**each.model_dump()) for each in self.adjudication.tensions),
            self.adjudication.instructions or "",
        )

    def _blocking(self) -> list[tuple[tuple[str, ...], tuple[Severity, ...]]]:
        approval, when = self.adjudication.approval, self.termination.approve_when
        said: list[tuple[tuple[str, ...], tuple[Severity, ...]]] = []
        if approval.block_on is not None:
            listed = {Severity(name) for name in approval.block_on}
            ordered = tuple(severity for severity in Severity if severity in listed)
            said.append((("adjudication", "approval", "block_on"), ordered))
        if approval.policy is not None:
            said.append((("adjudication", "approval", "policy"), POLICIES[approval.policy]))
        if when is not None:
            said.append((("termination", "approve_when"), POLICIES[when]))
        return said

    def _triggering(self) -> list[tuple[tuple[str, ...], tuple[Trigger, ...]]]:
        named = (
            (("adjudication", "escalation", "triggers"), self.adjudication.escalation.triggers),
            (("termination", "escalate_on"), self.termination.escalate_on),
        )
        return [(path, tuple(dict.fromkeys(said))) for path, said in named if said is not None]


def _disagreement(said: list[tuple[tuple[str, ...], tuple[Any, ...]]]) -> list[Mistake]:
    if len({frozenset(value) for _, value in said}) < 2:
        return []
    (first, wanted), *others = said
    there = f"{'.'.join(first)} says {_listed(wanted)}"
    return [
        Mistake(path, f"{'.'.join(path)} says {_listed(value)}, {there}", "keep one of them")
        for path, value in others
        if set(value) != set(wanted)
    ]


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(str(value) for value in values) or "nothing"
