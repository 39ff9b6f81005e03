"""Simulated critics, judge and fixer: what each of them does, at stated rates.

Every decision is a coin whose result depends only on the seed, the artifact, what is decided and
the round. So two loops that ask the same in the same round get the same answer, and differences
between loops come from what they ask, not from luck.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from benchmarks.loop.artifacts import Artifact, Defect

BLOCKING = frozenset({"CRITICAL", "HIGH"})


@dataclass(frozen=True)
class Rates:
    """How good the simulated agents are."""

    recall: tuple[tuple[str, float], ...] = (
        *(("CRITICAL", 0.85), ("HIGH", 0.80), ("MEDIUM", 0.75), ("LOW", 0.70)),
    )
    """How likely a critic reports a defect that is there, in one reading, by severity."""
    several: float = 0.95
    """What the recall is multiplied by if a critic reads for several constraints at once."""
    false_alarm: float = 0.3
    """How likely a critic reports a clean passage, in one reading."""
    suspects: int = 3
    """How many clean passages a critic tends to misread; its false alarms are about these."""
    dismissed_false: float = 0.8
    """How likely the judge dismisses a false alarm."""
    dismissed_true: float = 0.03
    """How likely the judge dismisses a true finding."""
    fixed: float = 0.85
    """How likely a fix succeeds; otherwise the passage stays as it is."""
    regression: float = 0.07
    """How likely work on one finding introduces a new defect next to its passage."""


@dataclass(frozen=True)
class Alarm:
    """What a critic reports: a true defect, or a clean passage that it misread."""

    ref: str
    constraint: str
    severity: str
    quote: str
    finding: str
    fix: str
    """The text that should replace the quote."""


@dataclass
class Simulation:
    """One artifact on its way through one loop, with everything that is true about it."""

    artifact: Artifact
    seed: int
    rates: Rates = field(default_factory=Rates)
    introduced: dict[str, Defect] = field(default_factory=dict)
    """Defects that edits can bring in, by ref; an edit that is not applied brings in none."""
    appeared: set[str] = field(default_factory=set)
    """The refs of all defects that some text had."""
    alarms: dict[str, Alarm] = field(default_factory=dict)
    """Everything that critics have reported, by ref."""
    dismissed: set[str] = field(default_factory=set)
    """What the judge has dismissed at least once."""

    def review(
        self, text: str, constraint: str, round_number: int, *, several: bool = False
    ) -> list[Alarm]:
        """Returns what a critic reports about a text by one constraint, the worst first.

        `several` tells that it reads by other constraints at the same time.
        """
        factor = self.rates.several if several else 1
        recall = {severity: rate * factor for severity, rate in self.rates.recall}
        found = [
            Alarm(each.ref, constraint, each.severity, each.bad, each.finding, each.good)
            for each in self.left(text)
            if each.constraint == constraint
            and self._coin("recall", each.ref, round_number) < recall[each.severity]
        ]
        alarms = [*found, *self._false_alarm(text, constraint, round_number)]
        return sorted(alarms, key=lambda each: list(recall).index(each.severity))

    def reported(self, alarms: Iterable[Alarm]) -> None:
        """Records what a critic has reported."""
        self.alarms.update({each.ref: each for each in alarms})

    def rejects(self, ref: str, round_number: int) -> bool:
        """Tells whether an agent that is asked about one finding alone does not confirm it."""
        return self._coin("verify", ref, round_number) < self._dismissal_rate(ref)

    def _dismissal_rate(self, ref: str) -> float:
        true = ref in self._defects()
        return self.rates.dismissed_true if true else self.rates.dismissed_false

    def dismisses(self, ref: str, round_number: int) -> bool:
        """Tells whether the judge dismisses a finding."""
        if self._coin("judge", ref, round_number) >= self._dismissal_rate(ref):
            return False
        self.dismissed.add(ref)
        return True

    def fix(self, text: str, refs: Iterable[str], round_number: int) -> str:
        """Returns the text after the fixer has worked on some findings."""
        for ref in refs:
            alarm = self.alarms[ref]
            if alarm.quote not in text:
                continue
            passage = alarm.fix if self.succeeds(ref, round_number) else alarm.quote
            if self._coin("regression", ref, round_number) < self.rates.regression:
                passage += f"\n{self._introduce(ref, round_number).bad}"
            text = text.replace(alarm.quote, passage, 1)
        return text

    def literal_edits(self, refs: Iterable[str], round_number: int) -> dict[str, str]:
        """Returns the new text of each passage that the judge knows how to fix, by ref.

        The fixer, who is asked about the others, fails with them: one coin decides for both, so
        the rate of success is the same whether edits are applied or an agent makes them.
        """
        known = [ref for ref in refs if ref in self.alarms and self.succeeds(ref, round_number)]
        return {ref: self.fix(self.alarms[ref].quote, [ref], round_number) for ref in known}

    def succeeds(self, ref: str, round_number: int) -> bool:
        """Tells whether work on a finding in a round leads to the correct text."""
        return self._coin("fix", ref, round_number) < self.rates.fixed

    def left(self, text: str) -> list[Defect]:
        """Returns the defects that a text has, and records that they were there."""
        left = [each for each in self._defects().values() if each.bad in text]
        self.appeared.update(each.ref for each in left)
        return left

    def _defects(self) -> dict[str, Defect]:
        return {each.ref: each for each in self.artifact.defects} | self.introduced

    def _false_alarm(self, text: str, constraint: str, round_number: int) -> list[Alarm]:
        """Returns at most one report of a clean passage that this critic tends to misread."""
        if self._coin("false", constraint, round_number) >= self.rates.false_alarm:
            return []
        stable = self._random("suspects", constraint, 0)
        suspects = stable.sample(self.artifact.clean, self.rates.suspects)
        severity = [stable.choice(("LOW", "MEDIUM", "HIGH")) for _ in suspects]
        number = self._random("suspect", constraint, round_number).randrange(len(suspects))
        quote = suspects[number]
        if text.count(quote) != 1:
            return []
        finding = f"The passage does not meet the constraint {constraint}."
        ref = f"f-{constraint}-{number + 1}"
        return [Alarm(ref, constraint, severity[number], quote, finding, self._reworded(quote))]

    def _reworded(self, passage: str) -> str:
        """Returns a clean passage with a harmless change, which is what fixing it comes to."""
        note = {"text": " as described above", "code": " /* checked */ "}[self.artifact.kind]
        return f"{passage[:-1]}{note}{passage[-1]}"

    def _introduce(self, ref: str, round_number: int) -> Defect:
        """Returns a new defect, which work on a finding in a round brings in."""
        random = self._random("damage", ref, round_number)
        constraint = random.choice(sorted(self.artifact.constraints))
        severity = random.choices(("CRITICAL", "HIGH", "MEDIUM", "LOW"), (1, 3, 4, 2))[0]
        name = f"n-{ref}-{round_number}"
        bad = f"This line, number {name}, is at odds with {constraint}."
        finding = f"The line contradicts what {constraint} asks for."
        defect = Defect(name, constraint, severity, bad, "", finding, planted=False)
        return self.introduced.setdefault(name, defect)

    def _coin(self, decision: str, about: str, round_number: int) -> float:
        return self._random(decision, about, round_number).random()

    def _random(self, decision: str, about: str, round_number: int) -> Random:
        return Random(f"{self.seed}/{self.artifact.name}/{decision}/{about}/{round_number}")
