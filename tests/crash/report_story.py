"""A story with every kind of work that a crash can interrupt.

It has a fan-out, retries, commands, requests to a human, a gate and a loop. Nothing is kept in
memory: the agent's reply depends only on its prompt, so it is the same in every process.
"""

from __future__ import annotations

import json
from typing import Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.effects import AgentRequest
from signoff.core.errors import StepFailed, UnknownName
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Question
from signoff.core.step import Condition, Edge, Gate, GateOption, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import InboxItem, Store
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401

NAME = "report"
OK, ITERATE = Outcome.OK, Outcome.ITERATE
StepResult = tuple[Outcome, dict[str, Any]]

TOPICS = ["cats", "dogs", "fish", "owls"]
# A shell, because Python takes longer to start than the rest of the story takes.
NOTE = """printf '%s\\n' "$2" >> "$1\""""


async def research(ctx: StepContext) -> StepResult:
    """Fans out; one item has to be retried, and one asks a human."""
    facts = await ctx.map(TOPICS, _fact, key="topics", retries=1)
    return OK, {"facts": facts, "picked": ctx.random().choice(["a", "b"]) in "ab"}


async def _fact(ctx: StepContext, topic: str) -> str:
    reply = await ctx.ask("claude", f"A fact about {topic}. {ctx.feedback or ''}")
    if len(reply.text) < 5:
        raise StepFailed("too short")
    if topic != "fish":
        return reply.text
    answer = await ctx.wait(Question("Which fish?"))
    polished = await ctx.ask("claude", f"Polish {answer.value}", key="polish")
    return polished.text


async def draft(ctx: StepContext) -> StepResult:
    """Fails its postcondition once in each iteration."""
    reply = await ctx.ask("claude", f"Draft {ctx.visit} of {ctx.attempt}. {ctx.feedback or ''}")
    return OK, {"draft": reply.text, "log": Append([f"draft {ctx.visit}"])}


async def test(ctx: StepContext, log: str) -> StepResult:
    """Runs two commands; after a crash one is rerun, and about the other a human is asked."""
    prefix = f"{ctx.run}/{ctx.step_id}/{ctx.visit}/{ctx.attempt}"
    note = ["/bin/sh", "-c", NOTE, "note", log]
    await ctx.command([*note, f"{prefix}/lint#1"], key="lint", on_crash="rerun")
    ran = await ctx.command([*note, f"{prefix}/deploy#1"], key="deploy")
    return (OK if ctx.visit == 2 else ITERATE), {"code": ran.code}


def publish(ctx: StepContext) -> StepResult:
    """Ends at a gate."""
    return OK, {"final": f"{ctx.step_state['draft']} on {len(ctx.step_state['facts'])} facts"}


def _long_enough(ctx: StepContext) -> bool:
    return len(ctx.result["draft"]) > 5


WORKFLOW = Workflow(
    "report",
    StepDef("research", handler=research, next={OK: "draft"}),
    StepDef(
        "draft",
        handler=draft,
        next={OK: "test"},
        postconditions=[Condition("length", _long_enough, "the draft is too short")],
    ),
    StepDef(
        "test",
        handler=test,
        next={OK: "publish", ITERATE: Edge("draft", bound=3, starts_iteration=True)},
    ),
    StepDef(
        "publish", handler=publish, gate=Gate("Publish?", [GateOption("yes", None)], ["final"])
    ),
)

EXPECTED = {
    "facts": ["cats purr", "dogs bark loudly", "polished salmon", "owls hoot"],
    "picked": True,
    "draft": "long draft 2",
    "log": ["draft 1", "draft 2"],
    "code": 0,
    "final": "long draft 2 on 4 facts",
    "_gate": {"step": "publish", "option": "yes", "input": ""},
}
"""The final state of the run, no matter how often it was killed."""

# Its functions are parsed here, once, and not in each of the processes that the harness forks.
_DIGEST = WORKFLOW.digest


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run, and answers its requests until it has ended."""
    agents = {"claude": log.watch(ScriptedAgent().on("", _answer))}
    async with Engine(store, agents=agents) as engine:
        result = await _start_or_resume(engine, store, log)
        while result.status is Status.WAITING:
            for item in result.inbox:
                _reply(store, item)
            result = await engine.resume(NAME, WORKFLOW)
    assert result.status is Status.COMPLETED, result


async def _start_or_resume(engine: Engine, store: Store, log: EffectLog) -> RunResult:
    try:
        store.row(NAME)
    except UnknownName:
        return await engine.start(WORKFLOW, {"log": str(log.path)}, name=NAME)
    return await engine.resume(NAME, WORKFLOW)


def _answer(request: AgentRequest) -> str:
    replies = {
        "about cats": "cats purr",
        "about dogs. too short": "dogs bark loudly",
        "about dogs": "dogs",
        "about fish": "fish swim",
        "about owls": "owls hoot",
        "Polish salmon": "polished salmon",
        "Draft 1 of 1": "1",
        "Draft 1 of 2": "long draft 1",
        "Draft 2 of 1": "2",
        "Draft 2 of 2": "long draft 2",
    }
    return next(text for part, text in replies.items() if part in request.prompt)


def _reply(store: Store, item: InboxItem) -> None:
    answers = {"Which fish?": "salmon", "Publish?": "yes"}
    # Any other request is about a command that may or may not have run; it is safe to rerun.
    answer = json.dumps({"value": answers.get(item.prompt, "rerun"), "text": ""})
    store.answer(item.id, answer, "ann", 0.0, item.digest)
