from typing import Any

from signoff.core import events as ev
from signoff.core.effects import EffectId, EffectKind
from signoff.core.outcome import Outcome, Status
from signoff.views.timeline import Decision, Timeline


def started(at: float = 0.0, **more: Any) -> ev.RunStarted:
    return ev.RunStarted("review", "d", "draft", {}, at=at, **more)


def moved(at: float, to: str | None, *, iteration: int = 1) -> ev.StepFinished:
    return ev.StepFinished(Outcome.OK, "x/ok", to, round=iteration, at=at)


def asked(at: float, effect: str, attempt: int = 1, **more: Any) -> ev.EffectStarted:
    payload = {"agent": "claude", "prompt": "p"} if attempt == 1 else None
    return ev.EffectStarted(EffectId(effect), EffectKind.ASK, "d", payload, attempt, at=at, **more)


def answered(at: float, effect: str, usd: float | None = 0.5) -> ev.EffectFinished:
    usage = {"tokens_in": 1, "tokens_out": 2, "usd": usd} if usd is not None else None
    return ev.EffectFinished(EffectId(effect), {"text": "t"}, usage=usage, at=at)


def test_a_visit_knows_its_number_round_outcome_and_duration() -> None:
    """`show` lists exactly these for every step."""
    line = Timeline().follow(
        [started(10), moved(13, "judge"), moved(14, "draft", iteration=2), moved(20, None)]
    )

    first, second, third = line.visits
    assert (first.step, first.visit, first.iteration, first.seconds) == ("draft", 1, 1, 3)
    assert (second.step, second.seconds, second.to) == ("judge", 1, "draft")
    assert (third.visit, third.iteration, third.outcome) == (2, 2, Outcome.OK)


def test_time_spent_waiting_for_a_human_is_not_time_at_work() -> None:
    """A step that waited over the weekend did not take three days."""
    line = Timeline().follow(
        [started(0), ev.RunStopped(Status.WAITING, at=5), ev.RunResumed(at=1000), moved(1002, None)]
    )

    assert line.visits[0].seconds == 7
    assert line.seconds() == 7


def test_a_process_that_died_is_counted_until_its_last_sign_of_life() -> None:
    """The night before the run was resumed is not time at work."""
    line = Timeline().follow([started(0), asked(4, "ask#1"), ev.RunResumed(at=1000)])

    assert line.visits[0].seconds == 4
    assert line.running == {}


def test_a_second_attempt_keeps_the_name_of_who_is_asked() -> None:
    """The journal does not repeat a payload, and `agent` alone says nothing."""
    line = Timeline().follow([started(0), asked(1, "a#1"), ev.RunResumed(at=2), asked(3, "a#1", 2)])

    assert line.running["a#1"].label == "claude"
    assert line.running["a#1"].attempt == 2


def test_a_fan_out_says_how_many_items_are_done_of_how_many() -> None:
    """With a limit on concurrency, most items have not even started."""
    fan = ev.EffectStarted(EffectId("critics#1"), EffectKind.MAP, "d", {"items": 8}, at=1)

    line = Timeline().follow(
        [
            started(0),
            fan,
            asked(1, "critics#1[0]/ask#1"),
            asked(1, "critics#1[1]~2/ask#1"),
            answered(2, "critics#1[0]/ask#1"),
            ev.ItemFinished("critics#1[0]", "r", at=2),
            ev.ItemFinished("critics#1[1]/inner#1[5]", "r", at=2),
        ]
    )

    critics = line.fans["critics"]
    assert (len(critics.done), critics.size) == (1, 8)
    (running,) = line.running.values()
    assert (running.fan, running.item) == ("critics", 1)


def test_a_fan_out_is_forgotten_with_its_step() -> None:
    """The next step's view would show critics that ended long ago."""
    line = Timeline().follow([started(0), asked(1, "c#1[0]/ask#1"), moved(2, "judge")])

    assert line.fans == {}
    assert line.running == {}


def test_a_call_of_unknown_price_makes_the_total_unknown() -> None:
    """A view that shows $0.50 here would lie about a bill."""
    line = Timeline().follow(
        [started(0), asked(1, "a#1"), answered(2, "a#1"), asked(3, "b#1"), answered(4, "b#1", None)]
    )

    assert line.spend.calls == 2
    assert line.spend.usd is None
    assert line.spend.known_usd == 0.5


def test_a_repeated_call_counts_what_the_first_one_cost() -> None:
    """The journal knows what a failed attempt cost; the view must agree with `show`."""
    failed = ev.EffectAttemptFailed(EffectId("a#1"), {"kind": "busy"}, {"usd": 0.25}, at=2)
    line = Timeline().follow(
        [started(0), asked(1, "a#1"), failed, asked(2, "a#1", 2), answered(3, "a#1")]
    )

    assert line.spend.calls == 2
    assert line.spend.usd == 0.75


def test_attempts_and_their_reason_belong_to_the_visit() -> None:
    """Users want to see that the third attempt is in progress, and why."""
    line = Timeline().follow([started(0), ev.AttemptFailed("too short", at=1)])

    assert line.visits[0].attempts == 2
    assert line.visits[0].feedback == "too short"


def test_a_call_in_doubt_is_not_free_once_no_process_drives_the_run() -> None:
    """`show` of a run that was killed in its first call printed `1 call · $0.00`."""
    line = Timeline().follow([started(0), asked(1, "a#1")])

    line.close_bill()

    assert (line.spend.calls, line.spend.usd) == (1, None)


def test_a_call_in_doubt_is_counted_when_its_attempt_ends() -> None:
    """After `resume --adopt` its cost would be forgotten, and the total look exact."""
    line = Timeline().follow(
        [
            started(0),
            asked(1, "a#1"),
            ev.RunResumed(at=2),
            ev.AttemptReplaced(at=3),
            asked(4, "a#1"),
            answered(5, "a#1"),
        ]
    )

    assert (line.spend.calls, line.spend.known_usd, line.spend.usd) == (2, 0.5, None)


def test_a_reply_that_came_late_is_on_the_bill() -> None:
    """The process that asked had died, so its call was no longer in progress."""
    line = Timeline().follow([started(0), asked(1, "a#1"), ev.RunResumed(at=2), answered(3, "a#1")])

    assert (line.spend.calls, line.spend.usd) == (1, 0.5)


def test_the_visit_in_progress_grows_with_the_clock() -> None:
    """Elapsed time that does not move looks like a hang."""
    line = Timeline().follow([started(10)])
    visit = line.visits[0]

    assert line.visit_seconds(visit, now=14) == 4
    assert line.seconds(now=14) == 4


def test_decisions_of_humans_are_listed_with_author_and_reason() -> None:
    """`show` is where users look for a rejection long afterwards."""
    approval = {"kind": "approval", "prompt": "Ship?"}
    reply = {"value": False, "text": "too long", "by": "ann", "at": 2.0}

    line = Timeline().follow(
        [
            started(),
            ev.EffectStarted(EffectId("wait#1"), EffectKind.WAIT, "d", approval, at=1),
            ev.EffectFinished(EffectId("wait#1"), reply, at=5),
        ]
    )

    assert line.decisions == [Decision("draft", "approval", False, "too long", "ann", 2.0)]


def test_work_that_a_human_did_for_an_agent_is_no_decision() -> None:
    """A run worked by hand has hundreds of them, each as long as a draft."""
    work = {"kind": "response", "prompt": "Write."}

    line = Timeline().follow(
        [
            started(),
            ev.EffectStarted(EffectId("wait#1"), EffectKind.WAIT, "d", work, at=1),
            ev.EffectFinished(EffectId("wait#1"), {"value": "a draft", "by": "ann"}, at=5),
        ]
    )

    assert line.decisions == []
