"""A long review, written into a store the way an engine would have."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from signoff.core import events as ev
from signoff.core.codec import encode
from signoff.core.outcome import Outcome, Status
from signoff.runtime.store_port import Commit, NewRun, RunId, Store

STEPS = ("generate", "critique", "adjudicate", "refine")
SYLLABLES = "ta ko mi ren sol ver ang ish the un per con dis al or em in ous ment ly".split()
SEVERITIES = ("CRITICAL", "HIGH", "MEDIUM", "LOW")


class LongReview:
    """A review in which every round finds new flaws and fixes those of the round before."""

    def __init__(self, store: Store, *, rounds: int = 20, findings: int = 500, lines: int = 250):
        self._store = store
        self._rounds = rounds
        self._per_round = findings // rounds
        self._lines = lines
        self._chance = random.Random(17)
        self._head, self._run = 0, RunId(0)
        self._entries: list[dict[str, Any]] = []
        self._text = [self._sentence(12) for _ in range(lines)]

    def write(self, name: str = "long") -> str:
        """Writes the run and returns its name; the findings of the last round stay open."""
        self._commit([ev.RunStarted("long", "d", "generate", {}, at=1.0)], new=self._new(name))
        self._step("generate", "critique", 1, artifact=self._joined())
        for number in range(1, self._rounds + 1):
            self._review(number)
            rows = [
                {"round": n, "open": self._open(n), "new": 5, "fixed": 4}
                for n in range(1, number + 1)
            ]
            found = {"round": number, "entries": [dict(each) for each in self._entries]}
            self._step("critique", "adjudicate", number, findings=found, rounds=rows)
            verdict = {"status": "REWRITE", "decisions": []}
            self._step("adjudicate", "refine", number, last_adjudication=verdict)
            if number < self._rounds:
                self._fix(number, found)
        stopped = ev.RunStopped(Status.LIMIT, at=5_000.0)
        self._commit([stopped], status=Status.LIMIT, release=True)
        return name

    def _review(self, number: int) -> None:
        for each in range(self._per_round):
            quote = self._text[(number * 7 + each * 9) % self._lines]
            self._entries.append(
                {
                    "id": f"{self._chance.getrandbits(48):012x}", "constraint": "clear",
                    "rule": f"rule-{each}", "severity": SEVERITIES[each % 4], "quote": quote,
                    "location": "", "finding": self._sentence(25), "status": "open",
                    "first": number, "last": number, "history": [[number, "new"]],
                    "flagged_by": ["claude"], "suggested_fix": self._sentence(10),
                }
            )  # fmt: skip

    def _fix(self, number: int, found: dict[str, Any]) -> None:
        hunks = []
        for entry in self._entries[-self._per_round :]:
            if entry["quote"] in self._text:
                line = self._text.index(entry["quote"])
                self._text[line] = self._sentence(12)
                hunks.append({"diff": f"@@ -{line + 1} +{line + 1} @@", "issue": entry["id"]})
            entry.update(status="fixed", history=[[number, "new"], [number + 1, "fixed"]])
        changed = {"artifact": self._joined(), "findings": found}
        self._step("refine", "critique", number + 1, hunks, **changed)

    def _open(self, number: int) -> dict[str, int]:
        return dict.fromkeys(SEVERITIES, self._per_round // 4 + number % 3)

    def _sentence(self, words: int) -> str:
        made = ["".join(self._chance.choices(SYLLABLES, k=self._chance.randint(1, 3)))
                for _ in range(words)]  # fmt: skip
        return " ".join(made).capitalize() + "."

    def _joined(self) -> str:
        return "\n".join(self._text) + "\n"

    def _step(
        self, kind: str, to: str, number: int, hunks: Sequence[Any] = (), **changed: Any
    ) -> None:
        record = {"kind": kind, "step": kind, "agent": "claude", "hunks": list(hunks)}
        delta = {"set": {"step": record, **changed}}
        at = float(self._head + 2)
        done = ev.StepFinished(Outcome.OK, f"{kind}/ok", to, delta, round=number, at=at)
        self._commit([done])

    def _new(self, name: str) -> NewRun:
        steps = [{"id": each, "title": "", "next": {}} for each in STEPS]
        definition = {"name": "long", "notation": "flows", "steps": steps, "source": {}}
        return NewRun(name, "long", "", "d", json.dumps(definition), 1.0, "")

    def _commit(self, events: list[ev.Event], **more: Any) -> None:
        blobs: dict[str, str] = {}
        text = encode([ev.to_json(each) for each in events], blobs)
        values = {"status": Status.RUNNING, "step": "critique", "iteration": 1, "reason": "",
                  "due_at": None, "at": float(self._head + 1), **more}  # fmt: skip
        commit = Commit(self._run, 1, self._head, text, blobs=blobs, **values)
        (result,) = self._store.commit([commit])
        assert result.accepted
        self._run, self._head = result.run or self._run, self._head + 1
