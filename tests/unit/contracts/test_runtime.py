"""Results in runs: whose they are, who reads them, and where functions run."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import signoff
from signoff.contracts import StepContext, define_workflow
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.patience import PATIENCE_SECONDS


def flow(*steps: dict[str, Any], **more: Any) -> Workflow:
    return define_workflow({"type": "t", "steps": list(steps), **more})


def step(name: str, command: Any, following: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "command": command, "next": following, **more}


def returning(value: Any) -> Callable[[StepContext], Any]:
    return lambda _ctx: value


async def play(workflow: Workflow, store: MemoryStore | None = None, **params: Any) -> RunResult:
    agent = ScriptedAgent().on("", '{"changes": [], "text": "done"}')
    async with Engine(store or MemoryStore(), agents={"claude": agent}) as engine:
        return await engine.start(workflow, params, name="run")


async def answer(workflow: Workflow, store: MemoryStore, value: str, text: str = "") -> RunResult:
    (item,) = store.items("run")
    signoff.answer(item, value, text=text, by="ann", store=store)
    async with Engine(store) as engine:
        return await engine.resume("run", workflow)


@pytest.mark.parametrize(
    "check",
    [
        "results.first.n == 1 && results.second.n == 2",
        'results["first"].n < checkpoint.results.second.n',
        lambda ctx: ctx.checkpoint.results["first"]["n"] == 1,
    ],
)
async def test_conditions_read_each_steps_result_under_its_own_name(check: Any) -> None:
    """Two steps that return the same key do not get in each other's way."""
    last = step("last", returning({}), preconditions=[check])

    result = await play(
        flow(
            step("first", returning({"n": 1}), "second"),
            step("second", returning({"n": 2}), "last"),
            last,
        )
    )

    assert result.status is Status.COMPLETED, result.reason


@pytest.mark.parametrize(
    "check",
    ["checkpoint.n == 2", "has(checkpoint.n)", "!has(checkpoint.n)", 'checkpoint["n"] == 2',
     pytest.param(lambda ctx: ctx.checkpoint.data.get("n") == 2, id="get"),
     pytest.param(lambda ctx: "n" not in ctx.checkpoint.data, id="in")],
)  # fmt: skip
async def test_a_name_that_two_steps_returned_is_refused_and_says_what_to_write(check: Any) -> None:
    """Whatever it were read as would be a guess, even that it is missing."""
    last = step("last", returning({}), preconditions=[check])

    result = await play(
        flow(
            step("first", returning({"n": 1}), "second"),
            step("second", returning({"n": 2}), "last"),
            last,
        )
    )

    assert result.status is Status.FAILED
    assert "write results.first.n or results.second.n" in result.reason


async def test_a_worker_cannot_change_what_an_earlier_step_found() -> None:
    """It would decide itself whether its work is complete."""
    work = {"name": "write", "prompt": "Write.", "next": "compare"}

    result = await play(
        flow(
            step("collect", returning({"changes": ["#1"]}), "write"),
            work,
            step("compare", lambda ctx: {"seen": ctx.checkpoint.data["changes"]}),
        )
    )

    assert result.state["seen"] == ["#1"]
    assert result.state["text"] == "done"


async def test_a_prompt_reads_a_result_of_a_step_further_down_as_empty_in_the_first_round() -> None:
    """A loop shows the writer what was missing the last time."""
    agent = ScriptedAgent().on("", '{"text": "done"}')
    missing = [["#17"], []]
    workflow = flow(
        {"name": "write", "prompt": "Missing: {{results.look-up.missing}}.", "next": "look-up"},
        step(
            "look-up",
            lambda _ctx: {"missing": missing.pop(0)},
            {"condition": "size(result.missing) == 0", "on_true": "end", "on_false": "write"},
        ),
        step("end", returning({})),
    )

    async with Engine(MemoryStore(), agents={"claude": agent}) as engine:
        result = await engine.start(workflow)

    assert result.status is Status.COMPLETED, result.reason
    assert [prompt.splitlines()[0] for prompt in agent.prompts] == [
        "Missing: .",
        'Missing: ["#17"].',
    ]


@pytest.mark.parametrize(
    ("option", "status"),
    [
        ({"label": "Approve and finalize"}, Status.REJECTED),
        ({"label": "Done", "ends": "completed"}, Status.COMPLETED),
        ({"label": "Reject and stop", "ends": "completed"}, Status.COMPLETED),
        ({"label": "Done", "ends": "rejected"}, Status.REJECTED),
    ],
)
async def test_a_gate_option_ends_a_run_as_it_declares_and_otherwise_as_rejected(
    option: dict[str, str], status: Status
) -> None:
    """`run && deploy` must not depend on the wording of a label."""
    workflow, store = (
        flow({"name": "gate", "human_gate": {"prompt": "Well?", "options": [option]}}),
        MemoryStore(),
    )
    await play(workflow, store)

    result = await answer(workflow, store, option["label"])

    assert result.status is status
    assert bool(workflow.warnings) is ("ends" not in option)


async def test_a_gate_shows_who_returned_a_shared_name_and_nothing_for_missing_ones() -> None:
    """The human decides on what there is."""
    context = ["n", "results.first.n", "missing", "results.gate.x", "own"]
    gate = {"prompt": "Well?", "context": context, "options": [{"label": "a", "ends": "completed"}]}
    store = MemoryStore()

    await play(
        flow(
            step("first", returning({"n": 1, "own": 3}), "second"),
            step("second", returning({"n": 2}), "gate"),
            {"name": "gate", "human_gate": gate},
        ),
        store,
    )

    (item,) = store.items("run")
    assert '"n":{"first":1,"second":2}' in item.form.replace(" ", "")
    assert '"own":3' in item.form.replace(" ", "")
    assert '"missing":null' in item.form.replace(" ", "")


async def test_conditions_know_the_gate_the_retry_and_the_completed_steps() -> None:
    """These are the names that the design of the workflow uses."""
    seen: list[Any] = []

    def last(ctx: StepContext) -> dict[str, Any]:
        decision, retry = ctx.checkpoint.gate_decision, ctx.checkpoint.pending_retry
        assert decision is not None
        seen.append((decision.gate, decision.option, decision.input, decision["gate"], retry))
        return {"tries": ctx.attempt}

    gate = {"prompt": "Well?", "options": [{"label": "Go", "next_step": "last"}]}
    checks = [
        '"gate" in checkpoint.completedSteps && ctx.runId == checkpoint.workflowRunId',
        'checkpoint.gateDecision.gate == "gate" && ctx.checkpoint.gateDecision.option == "Go"',
        lambda ctx: "gate" in ctx.checkpoint.completed_steps,
        lambda ctx: "last" not in ctx.checkpoint.completed_steps,
    ]
    workflow = flow(
        {"name": "gate", "human_gate": gate},
        step("last", last, preconditions=checks,
             postconditions=[{"name": "twice", "check": "ctx.result.tries > 1", "error": "again"}]),
    )  # fmt: skip
    store = MemoryStore()
    await play(workflow, store)

    result = await answer(workflow, store, "Go", "quickly")

    assert result.status is Status.COMPLETED, result.reason
    assert seen[0] == ("gate", "Go", "quickly", "gate", None)
    assert (seen[1][-1].step, seen[1][-1].error, seen[1][-1].attempt) == ("last", "again", 2)


async def test_plain_functions_of_items_run_at_the_same_time() -> None:
    """A thousand requests one after the other would take hours."""
    together = threading.Barrier(8)

    def one(ctx: StepContext) -> dict[str, Any]:
        together.wait(PATIENCE_SECONDS)
        return {"n": ctx.item}

    result = await play(
        flow(
            step("list", returning({"all": list(range(8))}), "each"),
            step("each", one, parallel=True, parallel_key="all"),
        )
    )

    assert result.status is Status.COMPLETED, result.reason


async def test_the_number_of_an_attempt_is_committed_before_a_plain_function_runs() -> None:
    """A process that is killed in the second attempt must not start with the first one again."""
    store, stored = MemoryStore(), []

    def tries(ctx: StepContext) -> dict[str, Any]:
        stored.append((ctx.attempt, "attempt_failed" in repr(store.load("run"))))
        return {"n": ctx.attempt}

    checks = [{"name": "twice", "check": "result.n > 1", "error": "again"}]

    await play(flow(step("only", tries, postconditions=checks)), store)

    assert stored == [(1, False), (2, True)]


async def test_a_retried_item_gets_its_error_and_what_the_human_wrote() -> None:
    """The remark of a human does not replace what was wrong."""
    seen: list[tuple[int, str]] = []

    def one(ctx: StepContext) -> dict[str, Any]:
        seen.append((ctx.attempt, ctx.feedback))
        return {"n": ctx.attempt}

    checks = [{"name": "third", "check": "result.n > 2", "error": "too early"}]
    each = step("each", one, parallel=True, parallel_key="all", postconditions=checks)
    workflow = flow(step("list", returning({"all": ["a"]}), "each"), each)
    store = MemoryStore()
    await play(workflow, store)

    result = await answer(workflow, store, "retry", "look again")

    assert result.status is Status.COMPLETED, result.reason
    assert seen == [
        (1, ""),
        (2, "too early"),
        (3, "too early\nA human wrote: look again"),
    ]
