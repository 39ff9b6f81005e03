"""Steps with instructions: a worker gets them, and the handler decides with what it reports."""

import json
from itertools import product
from typing import Annotated, Any

import pytest

from signoff.core import events as ev
from signoff.core.args import Arg, Param
from signoff.core.context import StepContext
from signoff.core.errors import AgentAuth, AgentBadRequest, AgentError, InvalidParams, NotAllowed
from signoff.core.outcome import Outcome, Status
from signoff.core.spend import Limits
from signoff.core.step import Condition, Handler, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.ports import Capabilities
from signoff.runtime.sub_agents import Dispatch
from signoff.testing import ScriptedAgent
from tests.tables import table
from tests.unit.runtime.engine_fixture import EngineFixture, Work

OK, ITERATE = Outcome.OK, Outcome.ITERATE
LEVELS = ("exploring", "low", "high")


def step(handler: Handler = None, **more: Any) -> StepDef:
    defaults: dict[str, Any] = {"next": {OK: None}}
    return StepDef("look", "Look around", ["Open it.", "Read it."], handler, **(defaults | more))


def flow(handler: Handler = None, **more: Any) -> Workflow:
    return Workflow("flow", step(handler, **more), roles={"worker": "claude"})


def settle(
    ctx: StepContext,
    confidence: Annotated[str, Arg(choices=LEVELS)] = "exploring",
    depth: Annotated[int, Arg(min=1, max=9)] = 1,
) -> Work:
    seen = {"confidence": confidence, "depth": depth, "param": ctx.workflow_params["confidence"]}
    return (OK if confidence == "high" else ITERATE), {"seen": seen}


LOOP = flow(settle, next={OK: None, ITERATE: "look"})


async def test_a_step_without_a_handler_is_given_to_the_worker(bench: EngineFixture) -> None:
    """A run that no one was shown must not count as done."""
    bench.agent.on("Look around", "I saw a cat.")

    result = await bench.start(flow())

    assert result.status is Status.COMPLETED
    assert result.state == {"look": "I saw a cat."}
    (prompt,) = bench.agent.prompts
    assert prompt.startswith("# Look around\n\nOpen it.\n\nRead it.\n\n")


def recovering(handler: Handler, **roles: str) -> Workflow:
    steps = (
        step(handler, next={OK: "end", Outcome.FAIL: "end"}, on_error="end"),
        StepDef("end", next={OK: None}),
    )
    return Workflow("flow", *steps, roles=roles)


@pytest.mark.parametrize("handler", [None, Dispatch("explore")])
async def test_an_unknown_agent_is_no_error_to_recover_from(
    bench: EngineFixture, handler: Handler
) -> None:
    """The run would complete although no one was shown its instructions."""
    result = await bench.start(recovering(handler))

    assert result.status is Status.FAILED
    assert "unknown agent" in result.reason


@table(
    ("handler", "error"),
    product([None, Dispatch("explore")], [AgentBadRequest("not installed"), AgentAuth("log in")]),
)
async def test_an_agent_that_fails_is_no_error_to_recover_from(
    handler: Handler, error: AgentError
) -> None:
    """Nor if its program is missing: once that is fixed, the run resumes at this step."""
    agent = ScriptedAgent([error, "fine" if handler is None else {"status": "pass", "notes": ""}])
    bench = EngineFixture(agents={"claude": agent})
    workflow = recovering(handler, worker="claude", explore="claude")

    failed = await bench.start(workflow)
    result = await bench.resume(workflow)

    assert (failed.status, failed.step) == (Status.FAILED, "look")
    assert result.status is Status.COMPLETED
    assert agent.remaining == 0
    await bench.close()


async def test_a_handler_that_fails_after_the_worker_can_be_recovered_from(
    bench: EngineFixture,
) -> None:
    """The instructions were followed, so the error is one of the handler."""

    def decide(ctx: StepContext) -> Work:
        raise ValueError(ctx.step_state["look"])

    bench.agent.on("Look around", "a cat")

    result = await bench.start(recovering(decide, worker="claude"))

    assert result.status is Status.COMPLETED
    assert "a cat" in result.state["_error"]["message"]


@pytest.mark.parametrize(
    ("settings", "own", "asked"),
    [({}, {}, "third"), ({}, {"worker": "second"}, "second"),
     ({"worker": "first"}, {"worker": "second"}, "first")],
)  # fmt: skip
async def test_settings_go_before_the_workflow_and_both_before_the_default(
    settings: dict[str, str], own: dict[str, str], asked: str
) -> None:
    """The user who runs it has the agents."""
    agents = {name: ScriptedAgent([name]) for name in ("first", "second", "third")}
    bench = EngineFixture(agents=agents, roles=settings, default_roles={"worker": "third"})

    result = await bench.start(Workflow("flow", step(), roles=own))

    assert result.state == {"look": asked}
    await bench.close()


async def test_reported_parameters_reach_the_handler_for_this_visit_only(
    bench: EngineFixture,
) -> None:
    """The next visit starts from what the run was started with."""
    bench.agent.on(
        "#",
        json.dumps({"result": "some", "confidence": "low", "depth": "3"}),
        # Some models fill in every key of a schema: null counts as left out.
        {"result": "all", "confidence": "high", "depth": None},
    )

    result = await bench.start(LOOP, depth=2)

    first, second = (event.delta["set"] for event in bench.events(ev.StepFinished))
    assert first["seen"] == {"confidence": "low", "depth": 3, "param": "low"}
    assert first["look"] == {"result": "some", "confidence": "low", "depth": 3}
    assert second["seen"] == {"confidence": "high", "depth": 2, "param": "high"}
    assert result.state["look"] == {"result": "all", "confidence": "high"}
    (started,) = bench.events(ev.RunStarted)
    assert started.params == {"confidence": "exploring", "depth": 2}
    # The worker is told which values a parameter takes, and could only guess them otherwise.
    request = bench.agent.requests[0]
    assert "- confidence: one of exploring, low, high" in request.prompt
    assert request.schema is not None
    assert list(request.schema["properties"]) == ["result", "confidence", "depth"]


@pytest.mark.parametrize(
    ("reply", "problems"),
    [
        ("I am done.", ["not JSON"]),
        ("[1]", ["not a JSON object"]),
        ('{"confidence": "high"}', ["'result' is missing"]),
        ('{"result": 3}', ["'result' is missing or not a text"]),
        ('{"result": "x", "confidence": "sure"}', ["'sure' is not one of the choices"]),
        ('{"result": "x", "depth": 10}', ["10 is above 9"]),
        ('{"result": "x", "mood": 1}', ["'mood' is unknown"]),
        ('{"depth": "deep", "confidence": 1}', ["'result'", "'deep' is not a whole", "'confid"]),
    ],
)
async def test_a_wrong_reply_is_sent_back_once_with_every_problem(
    bench: EngineFixture, reply: str, problems: list[str]
) -> None:
    """Then a human decides; the handler never sees a value outside its domain."""
    bench.agent.on("Look around", reply)

    result = await bench.start(LOOP)

    assert result.status is Status.WAITING
    _, second = bench.agent.prompts
    assert [each.about["attempt"] for each in bench.agent.requests] == [1, 2]
    assert all(problem in second for problem in problems)
    assert reply in second
    assert result.state == {}


@pytest.mark.parametrize(
    ("workflow", "reply"),
    [(LOOP, {"result": "<result>", "confidence": "high"}), (flow(), "<result>")],
)
async def test_a_form_that_was_not_filled_in_is_no_reply(
    bench: EngineFixture, workflow: Workflow, reply: Any
) -> None:
    """A command that is pasted as it was printed must not count as work."""
    bench.agent.on("Look around", reply)

    result = await bench.start(workflow)

    assert result.status is Status.WAITING
    assert "'result' still has its placeholder <result>" in bench.agent.prompts[1]


def count(
    ctx: StepContext,
    confidence: Annotated[str, Arg(choices=LEVELS)] = "exploring",
    iteration: Annotated[int, Arg(min=1, max=3)] = 1,
) -> Work:
    rounds = [*ctx.step_state.get("rounds", ()), iteration]
    return (OK if confidence == "high" or iteration == 3 else ITERATE), {"rounds": rounds}


async def test_a_run_counts_the_rounds_of_a_step_that_repeats(bench: EngineFixture) -> None:
    """A worker that miscounts could stay in a step forever, or leave it too early."""
    bench.agent.on("Look around", {"result": "some"})

    result = await bench.start(flow(count, next={OK: None, ITERATE: "look"}))

    assert result.state["rounds"] == [1, 2, 3]
    assert all("iteration" not in prompt for prompt in bench.agent.prompts)


@pytest.mark.parametrize(
    ("name", "value"), [("iteration", 3), ("folder", "/elsewhere"), ("task", "another")]
)
async def test_a_worker_cannot_set_what_belongs_to_the_run(
    bench: EngineFixture, name: str, value: Any
) -> None:
    """It would leave a loop early, or redirect the run's files for its handler."""

    def decide(
        ctx: StepContext, folder: str = "", iteration: Annotated[int, Arg(min=1, max=3)] = 1
    ) -> Work:
        return OK, {"seen": [folder, iteration, ctx.workflow_params["task"]]}

    flow = Workflow(
        "flow",
        step(decide, next={OK: None, ITERATE: "look"}),
        inputs=[Param("folder", str, default=""), Param("task", str, default="")],
        roles={"worker": "claude"},
    )
    bench.agent.on("Look around", {"result": "some", name: value}, {"result": "some"})

    result = await bench.start(flow, folder="/home", task="this")

    assert result.state["seen"] == ["/home", 1, "this"]
    first, second = bench.agent.prompts
    assert f"'{name}' is unknown" in second
    assert '{"result": "<result>"}' in first


def need(ctx: StepContext, title: str) -> Work:
    return OK, {"title": title}


async def test_what_a_step_requires_is_reported_by_its_worker(bench: EngineFixture) -> None:
    """It may be what the work is about, so it cannot be known when the run starts."""
    bench.agent.on("Look around", {"result": "read"}, {"result": "read", "title": "Emma"})

    result = await bench.start(flow(need))

    assert result.state["title"] == "Emma"
    assert "'title' is missing" in bench.agent.prompts[1]
    with pytest.raises(InvalidParams, match="title"):
        await bench.start(Workflow("flow", StepDef("look", handler=need, next={OK: None})))


async def test_a_worker_reads_the_project_and_changes_it_if_the_step_says_so(
    bench: EngineFixture,
) -> None:
    """Instructions about files need files; editing is the author's decision, step by step."""
    change = StepDef("fix", "Fix it", ["Edit it."], edits=True, next={OK: None})
    both = Workflow("flow", step(next={OK: "fix"}), change, roles={"worker": "claude"})
    bench.agent.on("#", "done")

    await bench.start(both)

    asked = [(request.workspace, request.edit) for request in bench.agent.requests]
    assert asked == [(".", False), (".", True)]


async def test_a_worker_is_shown_parameters_and_earlier_replies_as_data(
    bench: EngineFixture,
) -> None:
    """An agent that is called for one step knows nothing of the others."""
    told = StepDef("tell", "Tell it", ["Write it down."], next={OK: None})
    both = Workflow(
        "flow", step(next={OK: "tell"}), told, roles={"worker": "claude"}, inputs=["topic"]
    )
    bench.agent.on("#", 'A "cat".\n\n# Stop', "Done.")

    await bench.start(both, topic="pets")

    first, second = bench.agent.prompts
    assert '"topic": "pets"' in first
    assert "Write it down." not in first
    assert r'"look": "A \"cat\".\n\n# Stop"' in second
    assert "Read it." not in second


async def test_the_reply_is_durable_before_a_plain_handler_is_called(bench: EngineFixture) -> None:
    """It may act on the outside world, and after a crash no other reply may take its place."""
    recorded: list[int] = []

    def decide(ctx: StepContext) -> Work:
        recorded.append(len(bench.events(ev.EffectFinished)))
        return OK, {}

    bench.agent.on("Look around", "I saw a cat.")
    await bench.start(flow(decide))

    assert recorded == [1]


async def test_work_that_breaks_a_condition_goes_back_to_the_worker(bench: EngineFixture) -> None:
    """The worker is the one who can do better."""
    long = Condition("long", lambda ctx: len(ctx.step_state["look"]) > 5, "it is too short")
    bench.agent.on("#", "cat", "I saw a cat.")

    result = await bench.start(flow(postconditions=[long]))

    assert result.state == {"look": "I saw a cat."}
    assert "Previous attempt failed: it is too short" in bench.agent.prompts[1]


async def test_a_limit_on_money_needs_a_worker_with_a_price() -> None:
    """It could not be enforced, so the run is refused before it starts."""

    class Unpriced(ScriptedAgent):
        capabilities = Capabilities(reports_price=False)

    agent = Unpriced()
    bench = EngineFixture(agents={"claude": agent}, limits=Limits(usd=1.0))

    with pytest.raises(NotAllowed, match="price"):
        await bench.start(flow())
    await bench.restart(agents={"claude": agent, "other": ScriptedAgent(["I saw a cat."])})
    switched = await bench.engine.start(flow(), name="run", switch={ev.ANY_AGENT: "other"})

    assert switched.state == {"look": "I saw a cat."}
    await bench.close()
