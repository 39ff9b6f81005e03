"""Tests of the words a handler gives for the end of its run."""

from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.outcome import End, Outcome, Status
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from tests.unit.runtime.engine_fixture import EngineFixture, Work, one_step, only


def rounds(most: int, *, on_limit: Any = "end") -> Workflow:
    """Goes round and round, and says each time what an end here would mean."""

    def work(ctx: StepContext) -> Work:
        return Outcome.ITERATE, {"_reason": f"{ctx.iteration} rounds, 2 findings open"}

    again = Edge("work", starts_iteration=True, on_limit=on_limit)
    step = StepDef("work", handler=work, next={Outcome.ITERATE: again, Outcome.OK: None})
    return Workflow("flow", step, max_iterations=most)


@pytest.mark.parametrize("end", [End.NOT_CONVERGING, End.COMPLETED, None])
async def test_a_run_ends_in_the_words_of_the_step_that_ended_it(
    bench: EngineFixture, end: End | None
) -> None:
    """`not converging` alone does not say what to do about it."""

    def work(_ctx: StepContext) -> Work:
        return Outcome.FAIL, {"open": 3, "_reason": "no fewer findings for 3 rounds"}

    result = await bench.start(one_step(work, next={Outcome.FAIL: end}))

    assert result.reason == "no fewer findings for 3 rounds"
    assert result.state == {"open": 3}


async def test_a_run_at_its_limit_ends_in_the_words_of_its_step(bench: EngineFixture) -> None:
    """The step knows what was left open; the engine only counts rounds."""
    result = await bench.start(rounds(2))

    assert (result.status, result.reason) == (Status.LIMIT, "2 rounds, 2 findings open")
    assert result.state == {}


async def test_a_reason_for_an_end_is_dropped_if_the_run_continues(bench: EngineFixture) -> None:
    """The reason of a first round must not explain the end of a later one."""

    def first(_ctx: StepContext) -> Work:
        return Outcome.OK, {"_reason": "never mind"}

    def second(_ctx: StepContext) -> Work:
        return Outcome.OK, {}

    workflow = Workflow(
        "flow",
        StepDef("first", handler=first, next={Outcome.OK: "second"}),
        StepDef("second", handler=second, next={Outcome.OK: None}),
    )

    result = await bench.start(workflow)

    assert (result.reason, result.state) == ("", {})
    assert bench.events(ev.StepFinished)[0].delta == {}


async def test_the_question_at_the_limit_of_rounds_has_a_name(bench: EngineFixture) -> None:
    """It can be answered by file without its number, and says what the step says."""
    waiting = await bench.start(rounds(2, on_limit="ask"))

    item = only(waiting.inbox)
    assert '"question_id":"max_iterations"' in item.form.replace(": ", ":")
    assert "2 rounds, 2 findings open" in item.prompt
    assert '"continue"' in item.form
    assert '"stop"' in item.form


async def test_other_questions_of_the_engine_have_none(bench: EngineFixture) -> None:
    """A name shared by several questions would answer the wrong one some day."""

    again = Edge("work", bound=1, on_limit="ask")

    waiting = await bench.start(
        one_step(
            lambda _ctx: (Outcome.ITERATE, {}), next={Outcome.ITERATE: again, Outcome.OK: None}
        )
    )

    assert "at most 1 times" in only(waiting.inbox).prompt
    assert "question_id" not in only(waiting.inbox).form
