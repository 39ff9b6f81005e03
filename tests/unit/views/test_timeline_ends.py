from signoff.core import events as ev
from signoff.core.effects import EffectId
from signoff.core.outcome import Outcome, Status
from signoff.core.run_state import RunState
from signoff.views.timeline import EffectResult, EffectTry, Ended, StepVisit, Timeline
from tests.unit.views.events import START, answers, asks, at, journal, waits


def ends(events: list[ev.Event]) -> list[tuple[str, float, float, object]]:
    """Returns what ended, in order: name, start, end, result."""
    line = Timeline()
    return [_plain(part, event.at) for event in events for part in line.apply(event)]


def _plain(part: Ended, now: float) -> tuple[str, float, float, object]:
    started = part.started_at - START
    match part:
        case EffectTry():
            ended_at = now if part.ended_at is None else part.ended_at
            return f"{part.id} {part.number}", started, ended_at - START, part.result
        case StepVisit():
            return f"{part.step}/{part.visit}", started, now - START, part.outcome
        case RunState():
            return part.workflow, started, now - START, part.status


def test_a_run_is_one_tree_over_kills_waits_and_resumes() -> None:
    """Each try is a span of its own; the one that was killed ends when its process did."""
    assert ends(journal()) == [
        ("draft#1 1", 1, 3, EffectResult.RETRIED),
        ("draft#1 2", 4, 4, EffectResult.LOST),
        ("draft#1 3", 61, 71, EffectResult.OK),
        ("draft/1", 0, 72, Outcome.OK),
        ("wait#1 1", 73, 1001, EffectResult.OK),
        ("check#1 1", 1002, 1005, EffectResult.ERROR),
        ("sign/1", 72, 1006, Outcome.OK),
        ("docs", 0, 1006, Status.COMPLETED),
    ]


def test_what_has_not_ended_is_open() -> None:
    """A run that hangs is the one a user wants to look at."""
    line = Timeline().follow(journal()[:5])

    assert [(each.id, each.number, each.result) for each in line.open_tries()] == [
        ("draft#1", 2, EffectResult.OPEN)
    ]
    assert line.open_visit() == line.visits[-1:]


def test_an_ended_run_has_nothing_open() -> None:
    """Its spans would be exported twice."""
    line = Timeline().follow(journal())

    assert (line.open_tries(), line.open_visit()) == ([], [])


def test_a_reply_that_turns_up_after_a_kill_ends_its_own_try() -> None:
    """A process that lost its run stores what it paid for, and the next one records it."""
    events = [
        *journal()[:3],
        at(60, ev.RunResumed()),
        at(61, answers("draft#1")),
    ]

    assert ends(events) == [("draft#1 1", 1, 61, EffectResult.OK)]


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

    assert ends(events) == [
        ("draft#1 1", 1, 2, EffectResult.ERROR),
        ("draft/1", 0, 2, None),
        ("docs", 0, 2, Status.FAILED),
        ("draft#1 2", 61, 62, EffectResult.OK),
    ]


def test_a_call_that_was_stopped_with_its_run_is_lost_and_not_an_error() -> None:
    """Every Ctrl-C and every restart of a worker would look like a failing agent."""
    stopped = ev.EffectFinished(EffectId("draft#1"), error={"type": "AgentStopped"})
    events = [*journal()[:3], at(2, stopped), at(2, ev.RunStopped(Status.INTERRUPTED))]

    assert ends(events)[0] == ("draft#1 1", 1, 2, EffectResult.LOST)


def test_a_request_that_is_no_longer_needed_is_lost_when_its_step_ends() -> None:
    """No span may stay open forever."""
    events = [
        *journal()[:2],
        at(1, waits("wait#1")),
        at(1, ev.RunStopped(Status.WAITING)),
        at(9, ev.RunResumed()),
        at(10, ev.StepFinished(Outcome.OK, "draft/ok", None, {})),
    ]

    assert ends(events)[0] == ("wait#1 1", 1, 10, EffectResult.LOST)


def test_a_clock_that_runs_backwards_gives_no_negative_time() -> None:
    """Another machine resumes the run, and its clock is behind."""
    line = Timeline()
    events = [*journal()[:3], at(-5, answers("draft#1"))]

    (call,) = [each for event in events for each in line.apply(event)]

    assert isinstance(call, EffectTry)
    assert call.seconds == 0
