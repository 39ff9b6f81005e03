"""What a judge applies and when a human is asked, in the form of flow files.

`termination` is another place for two of these keys; a file may use either, or both as long as
they agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from signoff.core.requests import AnswerableBy
from signoff.core.severity import DEFAULT_BLOCK_ON, SEVERITIES, Severity
from signoff.documents.mistakes import Mistake
from signoff.flows.model import AdjudicationConfig, Tension, Trigger
from signoff.flows.sections import FlowSection, Many, SeverityName, Text

PolicyName = Literal[
    "no_critical", "no_critical_or_high", "no_critical_and_no_high", "all_resolved"
]
POLICIES: Mapping[PolicyName, tuple[Severity, ...]] = {
    "no_critical": Severity.CRITICAL.or_worse,
    "no_critical_or_high": Severity.HIGH.or_worse,
    "no_critical_and_no_high": Severity.HIGH.or_worse,
    "all_resolved": tuple(Severity),
}
"""Names for the severities that block."""


TRIGGERS = ", ".join(get_args(Trigger))
TriggerName = Annotated[Trigger, Field(description=f"one of: {TRIGGERS}")]
Triggers = Annotated[Many[TriggerName] | None, Field(description=f"a list of: {TRIGGERS}")]
Policy = Annotated[PolicyName | None, Field(description=f"one of: {', '.join(POLICIES)}")]


class ApprovalSection(FlowSection):
    """Which findings keep a text from passing."""

    block_on: Many[SeverityName] | None = Field(None, description=f"a list of: {SEVERITIES}")
    """Severities that block."""
    policy: Policy = None
    """The same by a name."""


class EscalationSection(FlowSection):
    """When a human is asked."""

    triggers: Triggers = None
    """What makes a human decide."""
    thrash_threshold: int = Field(2, ge=1, le=10, description="a whole number from 1 to 10")
    """After how many repetitions an issue to fix counts as thrashing."""
    answerable_by: Literal["human", "agent"] = Field("human", description="human or agent")
    """Who may answer open questions about findings."""


class AdjudicationSection(FlowSection):
    """What a judge applies."""

    approval: ApprovalSection = Field(
        default_factory=ApprovalSection.model_construct, description="block_on or policy"
    )
    """Which findings keep a text from passing."""
    escalation: EscalationSection = Field(
        default_factory=EscalationSection.model_construct,
        description="triggers, thrash_threshold and answerable_by",
    )
    """When a human is asked."""
    tensions: Many[Tension] = Field(
        (), description="a list of {axis, guidance, winner_on_conflict}"
    )
    """Goals that conflict."""
    instructions: Text | None = Field(None, description="a text")
    """Further instructions for the judge."""


class TerminationSection(FlowSection):
    """Other names for `adjudication.approval.policy` and `adjudication.escalation.triggers`."""

    approve_when: Policy = None
    """Which findings keep a text from passing."""
    escalate_on: Triggers = None
    """What makes a human decide."""


KeyPath = tuple[str, ...]


@dataclass(frozen=True)
class Judging:
    """What both places mean together."""

    adjudication: AdjudicationSection
    termination: TerminationSection

    @property
    def triggers(self) -> tuple[Trigger, ...] | None:
        """What makes a human decide; None if the file does not say."""
        return next(iter(self._triggers().values()), None)

    def disagreements(self) -> list[Mistake]:
        """Returns where two keys contradict each other."""
        return [*_disagreements(self._block_on()), *_disagreements(self._triggers())]

    def config(self, default_triggers: tuple[Trigger, ...]) -> AdjudicationConfig:
        """Returns what a judge applies."""
        return AdjudicationConfig(
            next(iter(self._block_on().values()), DEFAULT_BLOCK_ON),
            default_triggers if self.triggers is None else self.triggers,
            self.adjudication.escalation.thrash_threshold,
            self.adjudication.tensions,
            self.adjudication.instructions or "",
            AnswerableBy(self.adjudication.escalation.answerable_by),
        )

    def _block_on(self) -> dict[KeyPath, tuple[Severity, ...]]:
        approval, approve_when = self.adjudication.approval, self.termination.approve_when
        block_on: dict[KeyPath, tuple[Severity, ...]] = {}
        if approval.block_on is not None:
            severities = tuple(each for each in Severity if each in approval.block_on)
            block_on["adjudication", "approval", "block_on"] = severities
        if approval.policy is not None:
            block_on["adjudication", "approval", "policy"] = POLICIES[approval.policy]
        if approve_when is not None:
            block_on["termination", "approve_when"] = POLICIES[approve_when]
        return block_on

    def _triggers(self) -> dict[KeyPath, tuple[Trigger, ...]]:
        triggers = {
            ("adjudication", "escalation", "triggers"): self.adjudication.escalation.triggers,
            ("termination", "escalate_on"): self.termination.escalate_on,
        }
        return {
            path: tuple(dict.fromkeys(names))
            for path, names in triggers.items()
            if names is not None
        }


def _disagreements(lists: Mapping[KeyPath, tuple[Any, ...]]) -> Iterator[Mistake]:
    texts = {
        path: f"{'.'.join(path)} is {', '.join(map(str, values)) or 'empty'}"
        for path, values in lists.items()
    }
    first, *others = lists or [()]
    for path in others:
        if set(lists[path]) != set(lists[first]):
            yield Mistake(path, f"{texts[path]}, but {texts[first]}", "keep one of them")
