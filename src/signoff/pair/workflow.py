"""The one workflow of pairs: its parameters are the whole configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.outcome import End, Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.errors import UnknownName
from signoff.notation import AgentJob, Ask, CompileContext
from signoff.pair.presets import OLLAMA, PRESETS
from signoff.pair.settings import SETTINGS, PairSettings
from signoff.pair.steps import Approve, PairPhase, PairStep

MOST_TURNS = 10
INPUTS = (
    "task", "criteria", "writer", "reviewers", "checks", "verdict", "strict", "max_turns",
    "candidates", "keep", "similarity", "model_name", "temperature", "max_tokens", "base_url",
    "request_timeout",
)  # fmt: skip
"""The parameters of a pair; all but the task may be missing."""


def resolve(name: str, context: CompileContext) -> Workflow:
    """Returns the workflow of a preset."""
    return build(name, context)


def preset_names(_context: CompileContext | None = None) -> Iterable[str]:
    """Returns the names of the presets."""
    return PRESETS


def build(name: str, context: CompileContext, approve: Approve | None = None) -> Workflow:
    """Returns the workflow of a preset; `approve` decides about replies instead of the phrase."""
    if name not in PRESETS:
        raise UnknownName("preset of pairs", name, PRESETS)
    phase = PairPhase
    steps = {each: PairStep(each, approve if each is phase.REVIEWING else None) for each in phase}
    return Workflow(
        name,
        _step(steps[phase.INITIALIZED], "Start", {Outcome.OK: phase.GENERATING}),
        _step(steps[phase.GENERATING], "Write", {Outcome.OK: phase.REVIEWING}),
        _step(steps[phase.REVIEWING], "Review", {Outcome.OK: phase.DECIDING}),
        _step(
            steps[phase.DECIDING],
            "Decide",
            {
                Outcome.OK: phase.COMPLETED,
                Outcome.ITERATE: Edge(
                    phase.GENERATING, bound=MOST_TURNS - 1, starts_iteration=True
                ),
                Outcome.SKIP: phase.COMPLETED,
                Outcome.FAIL: phase.COMPLETED,
            },
        ),
        _step(
            steps[phase.COMPLETED],
            "Result",
            {
                Outcome.OK: None,
                Outcome.SKIP: End.NOT_CONVERGING,
                Outcome.FAIL: End.LIMIT,
            },
        ),
        description=f"A writer and reviewers: {PRESETS[name].summary}.",
        max_iterations=MOST_TURNS,
        notation="pair",
        inputs=INPUTS,
        required=("task",),
        prepare=_PairPreparation(name, context),
    )


def asks(workflow: Workflow, params: Mapping[str, Any]) -> list[Ask]:
    """Returns the writer and the reviewers, each with the model that is named for it.

    The Ollama server of pairs has settings of its own, which the agent of that name does not know.
    """
    prepared = workflow.prepare(params) if workflow.prepare is not None else {}
    settings = PairSettings.of(prepared[SETTINGS])
    seats = [
        (settings.writer, AgentJob.WRITE),
        *((each, AgentJob.REVIEW) for each in settings.reviewers),
    ]
    return [Ask(seat.agent, seat.model, job) for seat, job in seats if seat.agent != OLLAMA]


def _step(
    handler: PairStep, title: str, edges: Mapping[Outcome, str | End | Edge | None]
) -> StepDef:
    name = handler.phase.value
    return StepDef(name, title=title, handler=handler, next=edges)


@dataclass(frozen=True)
class _PairPreparation:
    """Completes the parameters of a run from the settings and the environment."""

    preset: str
    context: CompileContext

    def __call__(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings of the run."""
        # Checking values needs pydantic, which a resume should not wait for.
        from signoff.pair.configuration import resolve_settings

        return {SETTINGS: resolve_settings(self.preset, params, self.context)}
