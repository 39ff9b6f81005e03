"""Runs of the library's skills in memory, with a scripted agent in every role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signoff.api import run_async
from signoff.core.step import HandlerObject
from signoff.core.workflow import Workflow
from signoff.runtime.result import RunResult
from signoff.runtime.sub_agents import AgentRole
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent

PASS = {"status": "pass", "notes": "nothing to add"}
FAIL = {"status": "fail", "notes": "F1: the caller checks this already"}
DONE = "done"


@dataclass(frozen=True)
class SkillRun:
    """What became of a run."""

    result: RunResult
    steps: list[str]
    """The steps that were given to an agent, in order."""
    prompts: list[str]
    """What the agents got."""


async def run_skill(
    skill: Workflow, replies: Mapping[str, Sequence[Any]] | None = None, **params: Any
) -> SkillRun:
    """Runs a skill; a step without replies of its own is done at once, and passed by reviewers."""
    agent = ScriptedAgent()
    for step in skill.steps.values():
        own = (replies or {}).get(step.id) or [_success(skill, step.id)]
        agent.on(f"# {step.title}\n", *own)
    roles = {"worker", *map(str, AgentRole)}
    agents = dict.fromkeys(roles, agent)
    result = await run_async(skill, params, store=MemoryStore(), agents=agents)
    by_title = {f"# {step.title}": step.id for step in skill.steps.values()}
    steps = [by_title[heading(prompt)] for prompt in agent.prompts]
    return SkillRun(result, steps, agent.prompts)


def heading(prompt: str) -> str:
    """Returns the line with the title of the step."""
    return next(line for line in prompt.splitlines() if line.startswith("# "))


def reported(**params: Any) -> dict[str, Any]:
    """Returns the reply of a worker with parameters."""
    return {"result": DONE, **params}


def _success(skill: Workflow, step_id: str) -> Any:
    handler = skill[step_id].handler
    if isinstance(handler, HandlerObject):
        return DONE if len(handler.outcomes) == 1 else PASS
    params = skill.params[step_id]
    choices = {name: param.arg.choices for name, param in params.items() if param.arg.choices}
    return reported(**{name: each[-1] for name, each in choices.items()}) if params else DONE
