import sys
import threading
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import signoff
from signoff.contracts import StepContext, StepOutput, define_workflow
from signoff.core.errors import InvalidParams
from signoff.core.outcome import Status
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.patience import PATIENCE_SECONDS
from tests.tables import table

PYTHON = [sys.executable, "-IS", "-c"]
ECHO = "import json,sys; print(json.dumps({'got': json.load(sys.stdin)}))"


async def play(params: dict[str, Any] | None = None, /, **step: Any) -> RunResult:
    """Runs one step until it ends or waits."""
    agents = step.pop("agents", {})
    more = step.pop("more", {})
    workflow = define_workflow({"type": "t", "steps": [{"name": "work", **step}], **more})
    async with Engine(MemoryStore(), agents=agents) as engine:
        return await engine.start(workflow, params or {}, name="run")


async def asynchronous(ctx: StepContext) -> dict[str, Any]:
    """Is written as a coroutine."""
    return {"n": len(ctx.params)}


@pytest.mark.parametrize(
    ("command", "state"),
    [
        (lambda _ctx: {"n": 1}, {"n": 1}),
        (asynchronous, {"n": 0}),
        (lambda _ctx: StepOutput(result={"n": 2}), {"n": 2}),
        (lambda _ctx: {"success": True, "result": {"n": 3}, "nextStepHint": "x"}, {"n": 3}),
        (lambda _ctx: None, {}),
        (lambda _ctx: "a text", {}),
        ([*PYTHON, "print('{\"n\": 4}')"], {"n": 4}),
        ([*PYTHON, "pass"], {}),
        ([*PYTHON, "print('plain words')"], {}),
    ],
)
async def test_every_form_of_command_returns_its_result(
    command: Any, state: dict[str, Any]
) -> None:
    """The next step sees no difference between functions, coroutines and programs."""
    result = await play(command=command)

    assert result.status is Status.COMPLETED, result.reason
    assert {key: result.state[key] for key in result.state if not key.startswith("_")} == state


@table(
    ("success", "more"),
    product(
        [False, None, "true", 1, 0, "no", [], {}],
        [{}, {"notes": "done"}, {"result": {"n": 1}, "confidence": 1}],
    ),
)
async def test_success_that_is_not_true_fails_whatever_else_is_returned(
    success: Any, more: dict[str, Any]
) -> None:
    """An unknown key next to it must not turn a reported failure into a result."""
    result = await play(command=lambda _ctx: {"success": success, "error": "no", **more})

    assert result.status is Status.WAITING
    assert "no" in result.inbox[0].prompt
    assert "n" not in result.state


async def test_a_success_with_keys_of_its_own_is_the_result_as_a_whole() -> None:
    """`success` is a common word; only a failure has to be told apart."""
    result = await play(command=lambda _ctx: {"success": True, "n": 5})

    assert (result.status, result.state["n"]) == (Status.COMPLETED, 5)


async def test_a_program_gets_the_checkpoint_the_parameters_and_the_step() -> None:
    """Programs in any language can be steps."""
    result = await play({"book": "Emma"}, command=[*PYTHON, ECHO])

    got = result.state["got"]
    assert got["run_id"] == "run"
    assert got["step"] == "work"
    assert got["params"] == {"book": "Emma"}
    assert got["checkpoint"]["completed"] == []
    assert "retry_context" not in got


async def test_a_program_that_is_retried_gets_the_error() -> None:
    """The program can use the error to do better."""
    result = await play(
        command=[*PYTHON, ECHO], postconditions=[{"name": "again", "check": "ctx.attempt == 2"}]
    )

    assert result.status is Status.COMPLETED, result.reason
    retry = result.state["got"]["retry_context"]
    assert retry["attempt"] == 2
    assert "again does not hold" in retry["error"]


async def test_programs_run_in_the_folder_of_the_project(tmp_path: Path) -> None:
    """A run that is resumed from elsewhere finds its files."""
    (tmp_path / "here.txt").write_text("x")
    script = "import os,json; print(json.dumps({'files': os.listdir()}))"

    result = await play(command=[*PYTHON, script], more={"folder": str(tmp_path)})

    assert result.state["files"] == ["here.txt"]


@pytest.fixture
def hangs() -> Any:
    """A command that ends when the test does."""
    end = threading.Event()
    yield lambda _ctx: end.wait(PATIENCE_SECONDS)
    end.set()


@pytest.mark.parametrize("more", [{}, {"parallel": True, "parallelKey": "areas"}])
async def test_a_function_that_takes_too_long_is_abandoned(
    hangs: Any, more: dict[str, Any]
) -> None:
    """A step's time is limited for every kind of work, and for each item."""
    result = await play({"areas": ["a"]}, command=hangs, timeout=0.1, **more)

    assert result.status is Status.WAITING
    assert "0.1" in result.inbox[0].prompt


async def test_a_prompt_with_an_unknown_name_is_not_sent() -> None:
    """An agent would invent a value for `{{bok}}`."""
    claude = ScriptedAgent(["{}"])

    result = await play({"bok": None}, prompt="Review {{bok}}.", agents={"claude": claude})

    assert result.status is Status.FAILED
    assert str(result.reason).endswith("unknown name {{bok}}; start the run with -i bok=...")
    assert claude.requests == []


async def test_a_run_without_a_parameter_of_its_first_prompt_is_not_started() -> None:
    """It could only fail, and a dry run would have called its plan valid."""
    with pytest.raises(InvalidParams, match="'title': is missing"):
        await play({}, prompt="Review {{title}} of {{run_id}}.")


async def test_a_retried_prompt_contains_the_error() -> None:
    """It has the message of the condition."""
    claude = ScriptedAgent(['{"n": 1}', '{"n": 5}'])

    result = await play(
        prompt="Count.",
        postconditions=[{"name": "enough", "check": "result.n > 3", "error": "Too few"}],
        agents={"claude": claude},
    )

    assert result.status is Status.COMPLETED, result.reason
    assert claude.prompts[1].endswith("Previous attempt failed: Too few")
    assert '{"n": 1}' in claude.prompts[1]


async def test_a_retried_item_gets_its_own_previous_answer() -> None:
    """The answer to another item would mislead more than none."""
    claude = ScriptedAgent().on("failed", '{"ok": true}').on('"a"', '{"ok": 1}').on("", '{"ok": 2}')
    items = {"parallel": True, "parallel_key": "names", "postconditions": ["result.ok === true"]}

    result = await play({"names": ["a", "b"]}, prompt="Do.", agents={"claude": claude}, **items)

    assert result.status is Status.COMPLETED, result.reason
    retried = [prompt for prompt in claude.prompts if "failed" in prompt]
    shown = [('"a"' in prompt, '{"ok": 1}' in prompt, '{"ok": 2}' in prompt) for prompt in retried]
    assert sorted(shown) == [(False, False, True), (True, True, False)]


async def test_the_input_of_a_gate_is_part_of_every_attempt() -> None:
    """A retry must not forget what the human asked for."""
    claude = ScriptedAgent(['{"n": 1}', '{"n": 5}', '{"n": 1}', '{"n": 5}'])
    options = [{"label": "More", "nextStep": "count", "requiresInput": True}, {"label": "End"}]
    workflow = define_workflow(
        {
            "type": "t",
            "steps": [
                {
                    "name": "count",
                    "prompt": "Count.",
                    "postconditions": [{"name": "n", "check": "result.n > 3", "error": "Too few"}],
                    "next": "gate",
                },
                {"name": "gate", "humanGate": {"prompt": "Enough?", "options": options}},
            ],
        }
    )
    store = MemoryStore()
    async with Engine(store, agents={"claude": claude}) as engine:
        await engine.start(workflow, name="run")
        (item,) = store.items("run")
        signoff.answer(item, "More", text="in dozens", by="ann", store=store)

        await engine.resume("run", workflow)

    assert "in dozens" not in "".join(claude.prompts[:2])
    assert claude.prompts[2].endswith("A human wrote: in dozens")
    assert "A human wrote: in dozens" in claude.prompts[3]
    assert claude.prompts[3].endswith("Previous attempt failed: Too few")


async def test_a_missing_part_of_a_value_is_not_suggested_as_a_parameter() -> None:
    """`-i book.title=...` would not help: no parameter has parts."""
    result = await play({"book": "Emma"}, prompt="Review {{book.title}}.")

    assert str(result.reason).endswith("unknown name {{book.title}}")


async def test_a_precondition_on_a_missing_parameter_says_how_to_pass_it() -> None:
    """Forgetting -i is a common mistake with a workflow of another author."""
    result = await play(
        {"book": "Emma"},
        command=lambda _ctx: None,
        preconditions=["params.book != '' && params.title != 'params.x'"],
    )

    assert result.status is Status.FAILED
    assert "start the run with -i title=..." in str(result.reason)
    assert "-i book" not in str(result.reason)
    assert "-i x" not in str(result.reason)


def looks_up(ctx: StepContext) -> Any:
    """Forgets that there may be no title."""
    return ctx.params["title"]


async def test_an_error_of_a_function_is_reported_with_its_location() -> None:
    """Of ten look-ups of a title, the author has to find the one that failed."""
    place = f"KeyError: 'title' (test_work.py:{looks_up.__code__.co_firstlineno + 2})"

    command = await play(command=looks_up)
    condition = await play(command=lambda _ctx: None, postconditions=[looks_up])

    assert str(command.reason).endswith(place)
    assert f"looks_up raised {place}" in condition.inbox[0].prompt
