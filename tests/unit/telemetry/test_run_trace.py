from signoff.core import events as ev
from signoff.core.effects import EffectId
from signoff.core.outcome import Outcome, Status
from signoff.telemetry.run_trace import EffectResult, EffectSpan, RunSpan, RunTrace, StepSpan
from tests.unit.telemetry.events import START, answers, asks, at, journal, waits


def spans(events: list[ev.Event]) -> list[tuple[str, float, float, object]]:
    """Returns what ended, in order: name, start, end, result."""
    trace = RunTrace()
    return [_plain(span) for event in events for span in trace.apply(event)]


def _plain(span: EffectSpan | StepSpan | RunSpan) -> tuple[str, float, float, object]:
    times = span.started_at - START, span.ended_at - START
    match span:
        case EffectSpan():
            return f"{span.id} {span.number}", *times, span.result
        case StepSpan():
            return f"{span.step}/{span.visit}", *times, span.outcome
        case RunSpan():
            return span.workflow, *times, span.status


def test_a_run_is_one_tree_over_kills_waits_and_resumes() -> None:
    """Each try is a span of its own; the one that was killed ends when its process did."""
    assert spans(journal()) == [
        ("draft#1 1", 1, 3, EffectResult.RETRIED),
        ("draft#1 2", 4, 4, EffectResult.LOST),
        ("draft#1 3", 61, 71, EffectResult.OK),
        ("draft/1", 0, 72, Outcome.OK),
        ("wait#1 1", 73, 1001, EffectResult.OK),
        ("check#1 1", 1002, 1005, EffectResult.ERROR),
        ("sign/1", 72, 1006, Outcome.OK),
        ("docs", 0, 1006, Status.COMPLETED),
    ]


def test_what_has_not_ended_is_shown_up_to_the_last_event() -> None:
    """A run that hangs is the one a user wants to look at."""
    trace = RunTrace()
    for event in journal()[:5]:
        trace.apply(event)

    assert [_plain(span) for span in trace.unfinished()] == [
        ("draft#1 2", 4, 4, EffectResult.OPEN),
        ("draft/1", 0, 4, None),
        ("docs", 0, 4, Status.RUNNING),
    ]


def test_an_ended_run_has_nothing_unfinished() -> None:
    """Its spans would be exported twice."""
    trace = RunTrace()
    for event in journal():
        trace.apply(event)

    assert trace.unfinished() == []


def test_a_reply_that_turns_up_after_a_kill_ends_its_own_try() -> None:
    """A process that lost its run stores what it paid for, and the next one records it."""
    events = [
        *journal()[:3],
        at(60, ev.RunResumed()),
        at(61, answers("draft#1")),
    ]

    assert spans(events) == [("draft#1 1", 1, 61, EffectResult.OK)]


def test_an_effect_that_is_made_again_after_a_failure_gets_a_span_of_its_own() -> None:
    """Its attempts count from 1 again, and two spans must not have the same id."""
    failed = ev.EffectFinished(EffectId("draft#1"), error={"type": "AgentAuth"})
    events = [
        *journal()[:3],
        at(2, failed),
        at(2, ev.RunStopped(Status.FAILED)),
        at(60, ev.RunResumed()),
        at(61, asks("draft#1")),
        at(62, answers("draft#1")),
    ]

    assert spans(events) == [
        ("draft#1 1", 1, 2, EffectResult.ERROR),
        ("draft/1", 0, 2, None),
        ("docs", 0, 2, Status.FAILED),
        ("draft#1 2", 61, 62, EffectResult.OK),
    ]


def test_a_call_that_was_stopped_with_its_run_is_lost_and_not_an_error() -> None:
    """Every Ctrl-C and every restart of a worker would look like a failing agent."""
    stopped = ev.EffectFinished(EffectId("draft#1"), error={"type": "AgentStopped"})
    events = [*journal()[:3], at(2, stopped), at(2, ev.RunStopped(Status.INTERRUPTED))]

    assert spans(events)[0] == ("draft#1 1", 1, 2, EffectResult.LOST)


def test_a_request_that_is_no_longer_needed_is_lost_when_its_step_ends() -> None:
    """No span may stay open forever."""
    events = [
        *journal()[:2],
        at(1, waits("wait#1")),
        at(1, ev.RunStopped(Status.WAITING)),
        at(9, ev.RunResumed()),
        at(10, ev.StepFinished(Outcome.OK, "draft/ok", None, {})),
    ]

    assert spans(events)[0] == ("wait#1 1", 1, 10, EffectResult.LOST)


def test_a_clock_that_runs_backwards_gives_no_negative_time() -> None:
    """Another machine resumes the run, and its clock is behind."""
    trace = RunTrace()
    events = [*journal()[:3], at(-5, answers("draft#1"))]

    (span,) = [each for event in events for each in trace.apply(event)]

    assert isinstance(span, EffectSpan)
    assert span.seconds == 0
