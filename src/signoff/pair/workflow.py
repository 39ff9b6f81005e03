"""The one workflow of pairs: its parameters are the whole configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.outcome import End, Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.errors import UnknownName
from signoff.notation import AgentJob, Ask, CompileContext
from signoff.pair.config import SETTINGS, PairConfig, PairSettings, resolve_settings
from signoff.pair.presets import OLLAMA, PRESETS
from signoff.pair.steps import Approve, PairPhase, PairStep

MOST_TURNS = 10

_ANOTHER_TURN = Edge(PairPhase.GENERATING, bound=MOST_TURNS - 1, starts_iteration=True)
_EDGES: Mapping[PairPhase, tuple[str, Mapping[Outcome, str | End | Edge | None]]] = {
    PairPhase.INITIALIZED: ("Start", {Outcome.OK: PairPhase.GENERATING}),
    PairPhase.GENERATING: ("Write", {Outcome.OK: PairPhase.REVIEWING}),
    PairPhase.REVIEWING: ("Review", {Outcome.OK: PairPhase.DECIDING}),
    PairPhase.DECIDING: (
        "Decide",
        {
            Outcome.OK: PairPhase.COMPLETED,
            Outcome.ITERATE: _ANOTHER_TURN,
            Outcome.SKIP: PairPhase.COMPLETED,
            Outcome.FAIL: PairPhase.COMPLETED,
        },
    ),
    PairPhase.COMPLETED: (
        "Result",
        {Outcome.OK: None, Outcome.SKIP: End.NOT_CONVERGING, Outcome.FAIL: End.LIMIT},
    ),
}
"""The title of each step, and where its outcomes lead."""


def build(name: str, context: CompileContext, approve: Approve | None = None) -> Workflow:
    """Returns the workflow of a preset; `approve` decides about replies instead of the phrase."""
    if name not in PRESETS:
        raise UnknownName("preset of pairs", name, PRESETS)
    steps = []
    for phase, (title, edges) in _EDGES.items():
        handler = PairStep(phase, approve if phase is PairPhase.REVIEWING else None)
        steps.append(StepDef(phase.value, title=title, handler=handler, next=edges))
    return Workflow(
        name,
        *steps,
        description=f"A writer and reviewers: {PRESETS[name].summary}.",
        max_iterations=MOST_TURNS,
        notation="pair",
        inputs=tuple(each for each in PairConfig.model_fields if each != "preset"),
        required=("task",),
        prepare=_PairPreparation(name, context),
    )


def asks(workflow: Workflow, params: Mapping[str, Any]) -> list[Ask]:
    """Returns the writer and the reviewers, each with the model that is named for it.

    The Ollama server of pairs has settings of its own, which the agent of that name does not know.
    """
    prepared = workflow.prepare(params) if workflow.prepare is not None else {}
    seats = PairSettings.model_validate(prepared[SETTINGS]).seats
    asked = [
        (seats.writer, AgentJob.WRITE),
        *((each, AgentJob.REVIEW) for each in seats.reviewers),
    ]
    return [Ask(seat.agent, seat.model, job) for seat, job in asked if seat.agent != OLLAMA]


@dataclass(frozen=True)
class _PairPreparation:
    """Completes the parameters of a run from the settings and the environment."""

    preset: str
    context: CompileContext

    def __call__(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings of the run."""
        return {SETTINGS: resolve_settings(self.preset, params, self.context)}
