"""A run with most kinds of events, driven up to a point and resumed by a later version.

What is recorded of it must be understood by every later version, so nothing here may change:
its definition, too, is part of what was recorded. A new story goes into a file of its own.
"""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.effects import AgentRequest, Reply
from signoff.core.outcome import Outcome
from signoff.core.requests import Question
from signoff.core.spend import Usage
from signoff.core.step import Condition, Edge, Gate, GateOption, StepDef
from signoff.core.workflow import Workflow
from signoff.errors import AgentTransient, StepFailed
from signoff.testing import ScriptedAgent

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
