"""The state of a flow's run: what the next steps, the run directory and the reports read.

It is plain JSON under names that users of the run directory know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from signoff.core.delta import Append
from signoff.review.adjudication import Adjudication
from signoff.review.critique import Critique
from signoff.review.findings import Ledger

Scope = Literal["accumulated", "previous", "all"]
"""Which critiques a judge sees."""

MOST_GUIDANCE = 10
"""Answers of people that prompts repeat, the latest ones."""

LONGEST_QUESTION = 2_000
"""Characters of a question that are repeated with its answer; it may list hundreds of findings."""

UNREVIEWED = "nothing was reviewed: no critic read the artifact against any constraint"
"""What is noted of a judgement that had nothing to go by."""


@dataclass(frozen=True)
class FlowState:
    """A reader's view of the state."""

    raw: Mapping[str, Any]

    @property
    def artifact(self) -> str:
        """The text as it stands."""
        return str(self.raw.get("artifact", ""))

    @property
    def adjudication(self) -> Adjudication | None:
        """The last judge's answer, while it is about this artifact."""
        said = self.raw.get("last_adjudication")
        return Adjudication.from_json(said) if said else None

    @property
    def reviewed(self) -> bool:
        """Whether the last judge had anything to go by."""
        judged = self.raw.get("last_adjudication") or {}
        return UNREVIEWED not in judged.get("notes", ())

    @property
    def ledger(self) -> Ledger:
        """Every finding so far."""
        return Ledger.from_json(self.raw.get("findings") or {})

    @property
    def rounds(self) -> list[Mapping[str, Any]]:
        """How many findings were open after each iteration's reviews."""
        return list(self.raw.get("rounds", ()))

    @property
    def pursued(self) -> list[list[str]]:
        """The findings that were pursued in each iteration, by any judge, in order."""
        by_round: dict[int, dict[str, None]] = {}
        for each in self.raw.get("pursued", ()):
            by_round.setdefault(each["iteration"], {}).update(dict.fromkeys(each["findings"]))
        return [list(found) for found in by_round.values()]

    @property
    def best(self) -> Mapping[str, Any] | None:
        """The reviewed artifact with the fewest, least severe findings."""
        return self.raw.get("best")

    @property
    def guidance(self) -> list[str]:
        """What people have said, for prompts."""
        said = list(self.raw.get("human", ()))[-MOST_GUIDANCE:]
        return [f"{_shortened(each['question'])}\n{each['answer']}" for each in said]

    @property
    def remarks(self) -> list[Mapping[str, Any]]:
        """What is worth knowing about how it went: iteration, step and text, in order."""
        return list(self.raw.get("remarks", ()))

    def source(self, of: str = "") -> str:
        """Returns the material of a constraint, or of the goal."""
        return str((self.raw.get("sources") or {}).get(of, ""))

    @property
    def critiques_by_step(self) -> dict[str, list[dict[str, Any]]]:
        """Critiques of this artifact, by the step that made them, as they are stored."""
        return dict(self.raw.get("critiques_by_step", {}))

    @property
    def unadjudicated(self) -> list[Mapping[str, Any]]:
        """Critiques no judge has seen, as they are stored."""
        return list(self.raw.get("unadjudicated_critiques", ()))


def critiques_in_scope(state: Mapping[str, Any], scope: Scope) -> list[Mapping[str, Any]]:
    """Returns what a judge is given: what no judge has seen, the last step's, or everything."""
    view = FlowState(state)
    match scope:
        case "accumulated":
            return view.unadjudicated
        case "previous":
            last = state.get("last_critique_step")
            return [each for each in view.unadjudicated if each["step"] == last]
        case "all":
            return [each for made in view.critiques_by_step.values() for each in made]


def left_unadjudicated(state: Mapping[str, Any], scope: Scope) -> list[Mapping[str, Any]]:
    """Returns what stays for later judges once one has decided on its scope."""
    view = FlowState(state)
    match scope:
        case "accumulated":
            return []
        case "previous":
            last = state.get("last_critique_step")
            return [each for each in view.unadjudicated if each["step"] != last]
        case "all":
            return view.unadjudicated


def after(state: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the state as it will be once an update counts."""
    grown = {
        key: [*state.get(key, ()), *new] for key, new in update.items() if isinstance(new, Append)
    }
    return {**state, **update, **grown}


NOTHING_REVIEWED: Mapping[str, Any] = {
    "critiques_by_step": {},
    "unadjudicated_critiques": [],
    "last_critique_step": None,
}
"""How reviews stand once there is a new artifact to be read afresh."""


def stored(critique: Critique, step: str) -> dict[str, Any]:
    """Returns a critique as the state keeps it: with the step that made it."""
    return {**critique.to_json(), "step": step}


def read(kept: Sequence[Mapping[str, Any]]) -> list[Critique]:
    """Reads critiques the state keeps."""
    return [Critique.from_json(each) for each in kept]


def _shortened(question: str) -> str:
    cut = question[:LONGEST_QUESTION]
    return question if cut == question else f"{cut}…"
