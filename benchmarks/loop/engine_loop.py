"""The same work done by the installed signoff: a flow of four steps with four constraints."""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.loop.agents import CAPABILITIES, agents_of
from benchmarks.loop.artifacts import Artifact
from benchmarks.loop.meter import Meter
from benchmarks.loop.naive import ROUNDS, constraints
from benchmarks.loop.outcome import LoopEnd
from benchmarks.loop.simulation import Simulation
from signoff import Status
from signoff.agents.base import KnownAgent
from signoff.core.errors import SignoffError
from signoff.core.stop_reason import NotConverging, RoundLimit
from signoff.flows import GenflowConfig
from signoff.review.flow.compile import compile_flow
from signoff.review.flow.model import Flow
from signoff.review.flow.sections import Goal
from signoff.runtime.engine import Engine
from signoff.store.run_files import RunFiles
from signoff.store.sqlite import MemoryStore

APPLY, EDIT = "apply", "edit"
"""How refine steps work: literal edits are applied, or an agent edits the file."""
REREVIEW = {"rereview": "changed"}
ENDS = (RoundLimit, NotConverging)
"""Why a run may end without approval."""


async def engine_loop(
    artifact: Artifact, simulation: Simulation, meter: Meter, mode: str = APPLY
) -> LoopEnd:
    """Runs the flow to its end."""
    agents = agents_of(simulation, meter)
    known = {name: KnownAgent("simulated", declared=lambda: CAPABILITIES) for name in agents}
    flow = Flow(
        config=flow_config(mode),
        goal=Goal(goal=artifact.goal),
        constraints=tuple(constraints(artifact)),
        root=Path(),
        agents=known,
    )
    with closing(MemoryStore()) as store, TemporaryDirectory() as folder:
        files = RunFiles(Path(folder))
        async with Engine(store, agents=agents, files=files) as engine:
            result = await engine.start(compile_flow(flow, "loop"))
    approved = result.status is Status.COMPLETED
    # Anything else is an error of the benchmark or of signoff, not a result.
    assert approved or isinstance(result.stop_reason, ENDS), result.reason
    best = result.state.get("best") or result.state
    text = str((result.state if approved else best)["artifact"])
    return LoopEnd(approved, result.iteration, text, asyncio.get_running_loop().time())


@cache
def flow_config(mode: str) -> GenflowConfig:
    """Returns the flow, with incremental re-review if this version has it."""
    for in_step, in_flow in ((REREVIEW, {}), ({}, REREVIEW)):
        with suppress(SignoffError):
            return GenflowConfig.from_dict(_definition(mode, in_step, in_flow))
    return GenflowConfig.from_dict(_definition(mode, {}, {}))


def _definition(mode: str, in_step: dict[str, str], in_flow: dict[str, str]) -> dict[str, Any]:
    return {
        "max_iterations": ROUNDS,
        # The naive loop takes up every finding; by default, a flow ignores those of LOW severity.
        "default_behavior": dict.fromkeys(("critical", "high", "medium", "low"), "continue"),
        "workflow": [
            {"step": "generate", "agent": "author"},
            {"step": "critique", "name": "review", "agent": "critic", **in_step},
            {"step": "adjudicate", "agent": "judge"},
            {"step": "refine", "agent": "fixer", "mode": mode, "loop_to": "review"},
        ],
        **in_flow,
    }
