"""What a workflow prepares before a run starts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signoff.core.args import Param
from signoff.core.context import StepContext
from signoff.core.errors import BadHandlerResult, HandlerFailed, NotSerialisable, UsageError
from signoff.core.outcome import Outcome
from signoff.core.requests import Question
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.environment import Secrets
from signoff.store.run_files import RunFiles
from tests.unit.runtime.engine_fixture import OK, EngineFixture


async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    answer = await ctx.wait(Question("Continue?"))
    return OK, {"answer": answer.value, "params": dict(ctx.workflow_params)}


def prepared(prepare: Any) -> Workflow:
    step = StepDef("work", handler=work, next={OK: None})
    return Workflow("flow", step, inputs=["topic"], prepare=prepare)


async def test_what_is_prepared_is_recorded_with_the_parameters(bench: EngineFixture) -> None:
    """It is read from outside exactly once: a resume finds the same, whatever changed since."""
    calls: list[Mapping[str, Any]] = []

    def prepare(params: Mapping[str, Any]) -> Mapping[str, Any]:
        calls.append(dict(params))
        return {"standards": f"rules for {params['topic']}, read {len(calls)} times"}

    flow = prepared(prepare)
    await bench.start(flow, topic="tea")
    bench.answer("yes")
    result = await bench.resume(flow)

    assert calls == [{"topic": "tea"}]
    assert result.state["params"] == {"topic": "tea", "standards": "rules for tea, read 1 times"}


@pytest.mark.parametrize(
    ("given", "recorded"), [({}, "new"), ({"folder": None}, "new"), ({"folder": "mine"}, "mine")]
)
async def test_a_parameter_that_was_left_open_can_be_prepared(
    bench: EngineFixture, given: dict[str, Any], recorded: str
) -> None:
    """A folder that users may choose is created for those who do not."""

    def prepare(params: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"folder": "new"} if params["folder"] is None else {}

    step = StepDef("work", handler=work, next={OK: None})
    flow = Workflow("flow", step, inputs=[Param("folder", str, default=None)], prepare=prepare)
    await bench.start(flow, **given)
    bench.answer("yes")
    result = await bench.resume(flow)

    assert result.state["params"] == {"folder": recorded}


async def test_parameters_can_be_corrected_after_a_preparation(bench: EngineFixture) -> None:
    """The prepared ones are not declared, but they belong to the run."""
    flow = prepared(lambda _params: {"standards": "rules"})
    await bench.start(flow, topic="tea")
    bench.answer("yes")

    result = await bench.resume(flow, params={"topic": "coffee"})

    assert result.state["params"] == {"topic": "coffee", "standards": "rules"}


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def raises(_params: Mapping[str, Any]) -> Mapping[str, Any]:
    raise FileNotFoundError("standards.md is gone")


def refuses(_params: Mapping[str, Any]) -> Mapping[str, Any]:
    raise UsageError("unknown standards 'x'")


@pytest.mark.parametrize(
    ("prepare", "error", "problem"),
    [
        (raises, HandlerFailed, "preparing workflow 'flow' raised .*standards.md is gone"),
        (refuses, UsageError, "unknown standards 'x'"),
        (lambda _params: None, BadHandlerResult, "NoneType"),
        (lambda _params: {"topic": "tea"}, BadHandlerResult, "has already: topic"),
        (lambda _params: {"key": "zq-4711-very-secret"}, UsageError, "key contains the value"),
        (lambda _params: {"file": Path()}, NotSerialisable, "cannot be stored"),
    ],
)
async def test_a_preparation_that_fails_starts_nothing(
    tmp_path: Path, prepare: Any, error: type[Exception], problem: str
) -> None:
    """There is no run, no folder and no request to clean up."""
    secrets = Secrets.of({"MY_API_KEY": "zq-4711-very-secret"})
    bench = EngineFixture(files=RunFiles(tmp_path), secrets=secrets)

    with pytest.raises(error, match=problem):
        await bench.start(prepared(prepare), topic="coffee")
    await bench.close()

    assert bench.store.rows() == []
    assert bench.store.items() == []
    assert files_in(tmp_path) == []


async def test_wrong_parameters_are_refused_before_anything_is_prepared(
    bench: EngineFixture,
) -> None:
    """Reading from outside may take long."""
    calls: list[object] = []

    with pytest.raises(Exception, match="topics"):
        await bench.start(prepared(calls.append), topics="tea")

    assert calls == []
