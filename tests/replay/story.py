"""A run with most kinds of events, driven up to a point and resumed by a later version.

Once a version is released, what is recorded of it must be understood by every later version, so
nothing here may change any more: its definition, too, is part of what was recorded.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentTransient, StepFailed, WriteFailed
from signoff.core.outcome import Outcome
from signoff.core.requests import Question
from signoff.core.spend import Usage
from signoff.core.step import Condition, Edge, Gate, GateOption, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime import journal
from signoff.runtime.engine import Engine
from signoff.store.sqlite import SqliteStore
from signoff.testing import FrozenClock, ScriptedAgent
from tests.replay.recordings import Until

OK, ITERATE = Outcome.OK, Outcome.ITERATE
Work = tuple[Outcome, dict[str, Any]]


async def research(ctx: StepContext, topics: list[str]) -> Work:
    facts = await ctx.map(topics, _fact, key="topics", retries=1)
    return OK, {"facts": facts, "began": ctx.now().isoformat(), "long": "fact " * 2000}


async def _fact(ctx: StepContext, topic: str) -> str:
    reply = await ctx.ask("claude", f"A fact about {topic}. {ctx.feedback or ''}")
    if topic == "dogs" and ctx.attempt == 1:
        raise StepFailed("too short")
    if topic != "fish":
        return reply.text
    answer = await ctx.wait(Question("Which fish?"))
    return f"{answer.value}: {reply.text}"


async def draft(ctx: StepContext) -> Work:
    reply = await ctx.ask("claude", f"Draft {ctx.visit}, try {ctx.attempt}.", model="small")
    return OK, {"draft": reply.text, "log": Append([f"draft {ctx.visit}"]), "try": ctx.attempt}


async def judge(ctx: StepContext) -> Work:
    chance = ctx.random().random() < 2
    return (ITERATE if ctx.visit < 2 else OK), {"judged": ctx.visit, "chance": chance}


def second_try(ctx: StepContext) -> bool:
    return bool(ctx.step_state["try"] > 1)


STORY = Workflow(
    "story",
    StepDef("research", handler=research, next={OK: "draft"}),
    StepDef(
        "draft",
        handler=draft,
        postconditions=[Condition("second", second_try, "try again")],
        next={OK: "judge"},
    ),
    StepDef(
        "judge",
        handler=judge,
        next={ITERATE: Edge("draft", bound=3, starts_iteration=True), OK: "sign"},
    ),
    StepDef("sign", gate=Gate("Publish?", [GateOption("yes", None), GateOption("no", "draft")])),
)

FISH, PUBLISH = "Which fish?", "Publish?"
PARAMS = {"topics": ["cats", "dogs", "fish"]}


def agent(voice: str) -> ScriptedAgent:
    """Returns an agent whose replies show whether they are new or recorded."""
    busy = {"left": 1}

    def answer(request: AgentRequest) -> Reply:
        if "cats" in request.prompt and busy["left"]:
            busy["left"] = 0
            raise AgentTransient("overloaded")
        return Reply(f"{voice} on {request.prompt}", usage=Usage(10, 5, 0.25, model="small-1"))

    return ScriptedAgent().on("", answer)


async def tell(engine: Any, store: Any, *, answers: dict[str, str], name: str = "story") -> Any:
    """Drives the run on, answering what is asked, until nothing of it is left to answer.

    Another Python may put the same definition in other words, so it is adopted.
    """
    result = await engine.resume(name, STORY, adopt=True)
    while result.inbox and (open_ := [i for i in store.items(name) if i.prompt in answers]):
        for item in open_:
            given = f'{{"value": "{answers[item.prompt]}", "text": ""}}'
            store.answer(item.id, given, "ann", 1.0, item.digest)
        result = await engine.resume(name, STORY, adopt=True)
    return result


async def record(
    path: Path,
    *,
    commits: int = -1,
    answers: dict[str, str] | None = None,
    checkpoint_bytes: int = journal.CHECKPOINT_FROM_BYTES,
) -> None:
    """Runs the story in a new database, up to a commit or an unanswered request."""
    inner, usual = SqliteStore(path), journal.CHECKPOINT_FROM_BYTES
    agents, clock = {"claude": agent("then")}, FrozenClock(1_700_000_000.0)
    journal.CHECKPOINT_FROM_BYTES = checkpoint_bytes
    with suppress(WriteFailed):
        async with Engine(Until(inner, commits), agents=agents, clock=clock) as engine:
            with suppress(WriteFailed):
                await engine.start(STORY, PARAMS, name="story")
                await tell(engine, inner, answers=answers or {})
    journal.CHECKPOINT_FROM_BYTES = usual
    inner.close()


RECORDINGS = {
    "story-killed": partial(record, commits=4),
    "story-checkpoint": partial(record, checkpoint_bytes=2000),
    "story-gate": partial(record, answers={FISH: "trout"}),
    "story-ended": partial(record, answers={FISH: "trout", PUBLISH: "yes"}),
}
