import logging
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.effects import EffectId, EffectKind
from signoff.core.errors import AgentBadOutput, AgentError
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Question
from signoff.core.stop_reason import Cancelled, NotConverging, StepError
from signoff.runtime.effect_errors import error_info
from signoff.runtime.ports import Notice, Progress, Recorded, Retrying
from signoff.views.run_log import LOGGER, LoggingObserver, events_before
from tests.unit.core.test_events import BARE, FULL
from tests.unit.runtime.engine_fixture import EngineFixture, one_step

SECRET = "the plans of the sea"
PAIR = {"preset": "slogan", "task": SECRET, "model_name": "small", "max_turns": 5}
STARTED = ev.RunStarted("slogan", "d", "draft", {"task": SECRET, "settings": PAIR}, at=1)
ASK = ev.EffectStarted(
    EffectId("ask#1"), EffectKind.ASK, "d", {"agent": "claude", "model": "large", "prompt": SECRET}
)


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)


def logged(
    caplog: pytest.LogCaptureFixture, *events: ev.Event, log_content: bool = False
) -> list[Any]:
    caplog.clear()
    observer = LoggingObserver(log_content=log_content)
    for seq, event in enumerate(events, 1):
        observer.notice(Recorded("one", [event], seq))
    return list(caplog.records)


def test_the_start_and_the_end_of_a_run_have_the_fields_of_the_seed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Dashboards and alerts are built on these two records."""
    start, _step, end = logged(
        caplog,
        STARTED,
        ev.StepFinished(Outcome.OK, "a/ok", None, round=3, at=4),
        ev.RunStopped(Status.COMPLETED, at=4.5),
    )

    assert (start.getMessage(), start.levelname) == ("Starting workflow", "INFO")
    assert (start.run, start.workflow, start.step) == ("one", "slogan", "draft")
    assert (start.model_name, start.max_turns) == ("small", 5)
    assert (end.getMessage(), end.levelname) == ("Workflow completed", "INFO")
    assert (end.completion_reason, end.turn_count, end.duration) == ("approved", 3, 3.5)


def test_there_is_one_record_for_each_event(caplog: pytest.LogCaptureFixture) -> None:
    """Each event has a level and a message, also those of later versions."""
    for event in (*FULL, *BARE):
        for log_content in (False, True):
            (record,) = logged(caplog, event, log_content=log_content)
            assert record.event == event.tag
            assert record.created == (event.at or record.created)


def test_a_call_is_logged_with_its_agent_its_duration_and_its_cost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """These are the fields that people sum up."""
    ASK.at = 10
    usage = {"tokens_in": 1000, "tokens_out": 20, "usd": 0.5, "tokens_cached": None}

    _start, asked, answered, step = logged(
        caplog,
        STARTED,
        ASK,
        ev.EffectFinished(EffectId("ask#1"), {"text": SECRET}, usage=usage, at=12.5),
        ev.StepFinished(Outcome.OK, "draft/ok", "judge", round=2, at=13),
    )

    assert (asked.levelname, asked.getMessage()) == ("DEBUG", "one: draft: Effect started")
    assert (answered.levelname, answered.getMessage()) == ("INFO", "one: draft: Effect finished")
    assert (answered.agent, answered.model, answered.duration) == ("claude", "large", 2.5)
    assert (answered.tokens_in, answered.tokens_out, answered.usd) == (1000, 20, 0.5)
    assert not hasattr(answered, "tokens_cached")
    assert (step.step, step.round, step.outcome, step.duration) == ("draft", 1, "ok", 12)


def test_no_content_is_logged_unless_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """Logs are shipped to places where prompts, replies and inputs must not be."""
    question = {"kind": "question", "prompt": SECRET}
    argv = {"argv": ["grep", SECRET]}
    bad = error_info(AgentBadOutput(f"not JSON: {SECRET}"), "draft")
    story: list[ev.Event] = [
        STARTED,
        ASK,
        ev.EffectFinished(EffectId("ask#1"), {"text": SECRET}),
        ev.EffectStarted(EffectId("wait#1"), EffectKind.WAIT, "d", question),
        ev.EffectFinished(EffectId("wait#1"), {"value": SECRET, "text": SECRET}),
        ev.EffectStarted(EffectId("command#1"), EffectKind.COMMAND, "d", argv),
        ev.EffectFinished(EffectId("command#1"), {"stdout": SECRET}),
        ev.EffectFinished(EffectId("x"), error={"type": "AgentBadOutput", "message": SECRET}),
        ev.ParamsCorrected({"task": SECRET}),
        ev.Logged(SECRET),
        ev.AttemptFailed(SECRET),
        ev.Escalated(SECRET, delta={"set": {"a": SECRET}}),
        ev.AttemptOpened(SECRET),
        ev.ItemFinished("map#1[0]", SECRET),
        ev.ItemFailed("map#1[0]", SECRET),
        ev.StepWorked(Outcome.OK, {"set": {"a": SECRET}}),
        ev.StepFinished(Outcome.OK, "a/ok", None, {"set": {"a": SECRET}}, feedback=SECRET),
        ev.RunStopped.because(Status.CANCELLED, Cancelled(SECRET)),
        ev.RunStopped.because(Status.NOT_CONVERGING, NotConverging("rule", SECRET)),
        ev.RunStopped.because(Status.FAILED, StepError("draft", bad)),
    ]

    without = logged(caplog, *story)
    whole = logged(caplog, *story, log_content=True)

    assert not [vars(record) for record in without if SECRET in str(vars(record))]
    assert whole[0].user_input == SECRET
    assert whole[1].payload["prompt"] == SECRET
    assert whole[2].reply == {"text": SECRET}
    assert {record.event for record in whole if SECRET not in str(vars(record))} <= {
        "step_worked",
        "step_finished",
    }


def test_an_error_of_an_agent_is_logged_with_its_message(caplog: pytest.LogCaptureFixture) -> None:
    """An operator has to act on it, and it quotes no reply."""
    error = error_info(AgentError("connection refused"), "draft")

    _, _, failed, stopped = logged(
        caplog,
        STARTED,
        ASK,
        ev.EffectFinished(EffectId("ask#1"), error={"type": "AgentError", "message": "refused"}),
        ev.RunStopped.because(Status.FAILED, StepError("draft", error)),
    )

    assert (failed.levelname, failed.getMessage()) == ("WARNING", "one: draft: Effect finished")
    assert (failed.error_type, failed.error, failed.agent) == ("AgentError", "refused", "claude")
    assert (stopped.levelname, stopped.error_type) == ("WARNING", "AgentError")
    assert stopped.error == "connection refused"
    assert stopped.completion_reason == "error"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (Status.WAITING, "one: Workflow waiting"),
        (Status.PARKED, "one: Workflow parked"),
        (Status.INTERRUPTED, "one: Workflow interrupted"),
        (Status.LIMIT, "Workflow completed"),
        (Status.FAILED, "Workflow completed"),
    ],
)
def test_a_run_that_has_not_ended_is_not_called_completed(
    caplog: pytest.LogCaptureFixture, status: Status, message: str
) -> None:
    """A program that counts ends must not count waits."""
    *_, stopped = logged(caplog, STARTED, ev.RunStopped(status))

    assert stopped.getMessage() == message


def test_runs_do_not_get_mixed_up_and_are_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    """One process drives many runs at once, for weeks."""
    observer = LoggingObserver()
    other = ev.RunStarted("review", "d", "plan", {}, at=1)

    observer.notice(Recorded("one", [STARTED], 1))
    observer.notice(Recorded("two", [other], 1))
    observer.notice(Recorded("one", [ev.AttemptFailed("short")], 2))
    observer.notice(Recorded("one", [ev.RunStopped(Status.FAILED)], 3))

    record: Any = caplog.records[2]
    assert (record.run, record.step, record.workflow) == ("one", "draft", "slogan")
    assert observer._runs.keys() == {"two"}


async def test_a_resumed_run_is_logged_with_what_was_recorded_before(
    bench: EngineFixture, caplog: pytest.LogCaptureFixture
) -> None:
    """The process that resumes it has seen nothing of it, but its records need the same fields."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        await ctx.wait(Question("Good?"))
        return Outcome.OK, {}

    workflow = one_step(work)
    await bench.start(workflow)
    bench.answer("yes")
    bench.clock.advance(60)
    history = LoggingObserver(history=lambda run, seq: events_before(bench.store, run, seq))
    await bench.restart(observers=[history])

    await bench.resume(workflow)

    resumed, answered, step, ended = (vars(record) for record in caplog.records)
    assert resumed["workflow"] == step["workflow"] == "flow"
    assert (resumed["step"], resumed["times"]) == ("work", 1)
    assert answered["kind"] == "wait"
    assert answered["duration"] == step["duration"] == ended["duration"] == 60


def test_after_a_gap_the_records_are_right_again(caplog: pytest.LogCaptureFixture) -> None:
    """Notices are dropped when a disk is slow; the journal has what they said."""
    moved = ev.StepFinished(Outcome.OK, "draft/ok", "judge", round=2, at=3)
    observer = LoggingObserver(history=lambda _run, _seq: [STARTED, moved])

    observer.notice(Recorded("one", [STARTED], 1))
    observer.notice(Recorded("one", [ev.AttemptFailed("short")], 3))

    record: Any = caplog.records[-1]
    assert (record.step, record.round, record.workflow) == ("judge", 2, "slogan")


def test_retries_and_streamed_output_are_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    """A run that seems to hang is often one that backs off."""
    notices: list[Notice] = [
        Retrying("one", "ask#1", "overloaded", 2.5),
        Progress("one", "draft", "", SECRET),
    ]

    for each in notices:
        LoggingObserver().notice(each)
    LoggingObserver(log_content=True).notice(notices[1])

    assert caplog.messages == ["one: Retrying in 2.5s", f"one: draft: {SECRET}"]
    assert vars(caplog.records[0])["error"] == "overloaded"


def test_what_no_handler_wants_costs_no_record() -> None:
    """Most records of a run are details."""
    logger = logging.Logger("quiet", logging.WARNING)  # noqa: LOG001  # of this test alone
    made: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            made.append(record)

    logger.addHandler(Keeping())

    LoggingObserver(logger).notice(Recorded("one", [STARTED], 1))

    assert made == []
