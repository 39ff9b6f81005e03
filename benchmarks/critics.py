"""W9: a review flow's round, as wide as 32 critics, and what their prompts have in common."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from time import perf_counter

from benchmarks.payload import BIG_ARTIFACT, text
from benchmarks.sample import Figures
from benchmarks.sizes import Scale
from signoff import AgentRequest, Reply, Status
from signoff.review.flow.compile import compile_flow
from signoff.review.flow.model import POLICY_JUDGE, Flow, GenflowConfig, StepKind, WorkflowStep
from signoff.review.flow.sections import Goal
from signoff.review.pure.constraint import Constraint, Rule
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Agent, Call
from signoff.store.run_files import RunFiles
from signoff.store.sqlite import SqliteStore

THINKS_SECONDS = 0.2
"""How long a critic takes; real ones take 100 times as long, which would hide our cost."""

PASSED = json.dumps({"overall": "PASS", "issues": [], "summary": "Nothing to say."})


class Author:
    """Writes at once."""

    async def ask(self, _request: AgentRequest, _call: Call) -> Reply:
        """Returns the artifact."""
        return Reply(text(0, BIG_ARTIFACT))


class Panel:
    """Reviews slowly, and records its prompts and how long it took."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.took: list[float] = []

    async def ask(self, request: AgentRequest, _call: Call) -> Reply:
        """Returns a critique without findings, some time later."""
        began = perf_counter()
        self.prompts.append(request.prompt)
        await asyncio.sleep(THINKS_SECONDS)
        self.took.append(perf_counter() - began)
        return Reply(PASSED)


async def critics(folder: Path, scale: Scale) -> Figures:
    """W9: one round over 20 KB, from its start to its approval, with the run directory written."""
    panel = Panel()
    workflow = compile_flow(_flow(4 * scale.critics, folder), "round")
    agents: dict[str, Agent] = {"author": Author(), "claude": panel}
    with closing(SqliteStore(folder / "signoff.db")) as store:
        async with Engine(store, agents=agents, files=RunFiles(folder / "runs")) as engine:
            began = perf_counter()
            result = await engine.start(workflow)
            took = perf_counter() - began
    assert result.status is Status.COMPLETED, result.reason
    assert len(panel.prompts) == 4 * scale.critics
    shared = _common_beginning(panel.prompts)
    return {
        "round_ms": took * 1000,
        "over_ms": (took - max(panel.took)) * 1000,
        "shared_pct": 100 * shared / max(map(len, panel.prompts)),
    }


def _common_beginning(texts: Sequence[str]) -> int:
    """Returns the length of the prefix that all texts share."""
    # In sort order the first and the last text differ earliest, so these two decide.
    pairs = zip(min(texts), max(texts), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _flow(critics: int, root: Path) -> Flow:
    steps = (
        WorkflowStep(step=StepKind.GENERATE, name="draft", agent="author", id="draft"),
        WorkflowStep(step=StepKind.CRITIQUE, name="review", id="review"),
        WorkflowStep(step=StepKind.ADJUDICATE, name="judge", agent=POLICY_JUDGE, id="judge"),
    )
    return Flow(
        config=GenflowConfig(workflow=steps),
        goal=Goal(goal="Write about numbers."),
        constraints=tuple(_constraint(number) for number in range(critics)),
        root=root,
    )


def _constraint(number: int) -> Constraint:
    rules = tuple(Rule(f"rule-{each}", f"Rule {each} of {number} holds.") for each in range(5))
    return Constraint(f"constraint-{number}", summary=f"Mind number {number}.", rules=rules)
