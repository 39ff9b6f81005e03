"""Flows that tests build, and scripted agents that run them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from signoff import plugins
from signoff.agents.base import KnownAgent
from signoff.agents.kinds import BUILT_IN
from signoff.core.severity import Severity
from signoff.review.flow.compile import compile_flow
from signoff.review.flow.layout import FlowLayout
from signoff.review.flow.model import Flow, GenflowConfig, StepKind, WorkflowStep
from signoff.review.flow.sections import Goal
from signoff.review.pure.constraint import Constraint, Rule
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Agent, capabilities_of
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import Store
from signoff.store.run_files import RunFiles
from signoff.store.sqlite import MemoryStore
from signoff.views.run_directory.directory import RunDirectory

GOAL = Goal(goal="Write about the sea.")

Model = TypeVar("Model", bound=BaseModel)


def changed(model: Model, /, **fields: Any) -> Model:
    """Returns a model with other values in some fields, checked like any other."""
    return type(model).model_validate({**dict(model), **fields})


def step(kind: str, name: str | None = None, **fields: Any) -> WorkflowStep:
    """Returns one step of a flow."""
    return WorkflowStep(step=StepKind(kind), name=name, id=name or kind, **fields)


def constraint(name: str, **fields: Any) -> Constraint:
    """Returns a constraint with one rule."""
    rule = Rule(f"{name}-rule", f"It must be {name}.", Severity.HIGH)
    return Constraint(name, summary=f"Be {name}.", rules=(rule,), **fields)


def lone_constraint(name: str) -> Constraint:
    """Returns a constraint that joins no call that is made for others."""
    return constraint(name, script="./check.sh")


MINIMAL = (step("generate"), step("critique"), step("adjudicate"), step("refine", mode="rewrite"))

REWRITE_LOOP = (
    step("generate"),
    step("critique", "review"),
    step("adjudicate", "judge", agent="policy"),
    step("refine", "fix", mode="rewrite", loop_to="review"),
)


def flow(
    steps: Sequence[WorkflowStep] = MINIMAL,
    constraints: Sequence[Constraint] = (constraint("clear"),),
    *,
    allow_scripts: bool = False,
    root: Path | None = None,
    kinds: Mapping[str, str] | None = None,
    **config: Any,
) -> Flow:
    """Returns a flow about the sea."""
    return Flow(
        config=GenflowConfig(workflow=tuple(steps), **config),
        goal=GOAL,
        constraints=tuple(constraints),
        root=root or Path("/nowhere"),
        agents={**known({name: name for name in BUILT_IN}), **known(kinds or {})},
        allow_scripts=allow_scripts,
    )


def known(kinds: Mapping[str, str]) -> dict[str, KnownAgent]:
    """Returns agents that can do what built-in kinds declare, by name."""
    declared = {kind: capabilities_of(plugins.load(BUILT_IN[kind])) for kind in kinds.values()}
    return {
        name: KnownAgent(kind, declared=partial(replace, declared[kind]))
        for name, kind in kinds.items()
    }


def issue(finding: str, severity: str = "HIGH", evidence: str = "OMISSION", **more: Any) -> Any:
    """Returns one issue as a critic reports it."""
    return {"severity": severity, "finding": finding, "evidence": evidence, **more}


def passes() -> str:
    """Returns a critique without findings."""
    return json.dumps({"overall": "PASS", "issues": [], "summary": "fine"})


def fails(*issues: Any) -> str:
    """Returns a critique with findings."""
    return json.dumps({"overall": "FAIL", "issues": list(issues), "summary": "not yet"})


def rules(status: str, *decisions: Mapping[str, Any], bill: str = "") -> str:
    """Returns a judge's answer."""
    judged = json.dumps({"status": status, "decisions": list(decisions)})
    return f"=== ADJUDICATION ===\n{judged}\n=== BILL_OF_WORK ===\n{bill}\n"


async def play(
    played: Flow,
    agents: Mapping[str, Agent],
    folder: Path,
    *,
    store: Store | None = None,
    name: str = "run",
) -> RunResult:
    """Starts a run of a flow and returns its result."""
    workflow, store = compile_flow(played, "sea"), store or MemoryStore()
    async with Engine(store, agents=agents, files=RunFiles(folder)) as engine:
        result = await engine.start(workflow, name=name)
    show_files(store, folder, name)
    return result


async def answer_and_resume(
    played: Flow,
    agents: Mapping[str, Agent],
    folder: Path,
    store: Store,
    answer: Any = None,
    text: str = "",
    name: str = "run",
) -> RunResult:
    """Answers the pending request of a run, if there is an answer, and resumes the run."""
    import signoff

    if answer is not None:
        (item,) = store.items(name)
        signoff.answer(item, answer, text=text, by="ann", store=store)
    workflow = compile_flow(played, "sea")
    async with Engine(store, agents=agents, files=RunFiles(folder)) as engine:
        result = await engine.resume(name, workflow)
    show_files(store, folder, name)
    return result


def show_files(store: Store, folder: Path, name: str = "run") -> None:
    """Writes the run directory of a flow."""
    RunDirectory(folder, store, layout_of=lambda _notation: FlowLayout()).catch_up(name)
