"""Lets contestants take turns, so that other load on the machine affects all of them equally."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.contestants import SCRATCH, Contestant, SampleError
from benchmarks.sample import Figures

Samples = dict[str, dict[str, list[Figures]]]
"""By contestant and work."""

NEEDS = {"W5": "W5-prepare"}
"""Workloads that start from the files of another one."""


@dataclass
class Rounds:
    """Takes samples of works, contestants in turn."""

    rounds: int
    quick: bool
    say: Callable[[str], None]
    samples: Samples = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    """What failed; a contestant that fails once is not asked for that work again."""

    def take(self, work: str, contestants: Sequence[Contestant]) -> None:
        """Takes the samples of one work: one of each contestant per round."""
        SCRATCH.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=SCRATCH, prefix=f"{work}-") as scratch:
            able = [
                who for who in contestants if self._prepared(work, who, Path(scratch, who.name))
            ]
            for number in range(1, self.rounds + 1):
                self.say(f"{work}, round {number} of {self.rounds}")
                able = [who for who in able if self._sampled(work, who, Path(scratch, who.name))]

    def _prepared(self, work: str, who: Contestant, folder: Path) -> bool:
        folder.mkdir()
        return work not in NEEDS or self._done(who, NEEDS[work], folder) is not None

    def _sampled(self, work: str, who: Contestant, folder: Path) -> bool:
        if work not in NEEDS:
            shutil.rmtree(folder)
            folder.mkdir()
        figures = self._done(who, work, folder)
        if figures is None:
            return False
        self.samples.setdefault(who.name, {}).setdefault(work, []).append(figures)
        return True

    def _done(self, who: Contestant, work: str, folder: Path) -> Figures | None:
        try:
            return who.sample(work, folder, quick=self.quick)
        except SampleError as failure:
            self.failures.append(str(failure))
            return None
