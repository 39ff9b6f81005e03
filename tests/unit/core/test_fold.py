from collections.abc import Callable
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.effects import EffectId, EffectKind
from signoff.core.fold import evolve, fold, item_scope
from signoff.core.frozen import FrozenDict, FrozenList
from signoff.core.outcome import Outcome, Status
from signoff.core.run_state import EffectRecord, PendingResult, RunState, Stage
from signoff.core.spend import LedgerEntry, Limits, Spend, Usage

STARTED = ev.RunStarted("flow", "digest", "a", {"n": [1]}, {"usd": 2.0}, "seed", at=100.0)
ASK = EffectId("ask#1")
COST = Usage(10, 5, 0.5).to_json()


def state_after(*events: ev.Event) -> RunState:
    return fold([STARTED, *events])


def asked(identity: str, attempt: int = 1, **more: Any) -> ev.EffectStarted:
    return ev.EffectStarted(EffectId(identity), EffectKind.ASK, "d", None, attempt, **more)


def answered(identity: str, reply: Any = "hi", **more: Any) -> ev.EffectFinished:
    return ev.EffectFinished(EffectId(identity), reply, **more)


def failed(identity: str, **more: Any) -> ev.EffectFinished:
    return ev.EffectFinished(EffectId(identity), error={"type": "AgentError"}, **more)


def test_every_kind_of_event_has_an_effect_on_the_state() -> None:
    """An event without a fold would be lost at the next resume."""
    from signoff.core.fold import _HOW

    assert set(_HOW) == set(ev.KINDS)


def test_a_started_run_is_at_its_entry_step() -> None:
    """It has the parameters it was started with, read-only."""
    state = state_after()

    assert (state.workflow, state.definition, state.seed) == ("flow", "digest", "seed")
    assert (state.step, state.visit, state.stage) == ("a", 1, Stage.ENTER)
    assert (state.status, state.iteration, state.attempt) == (Status.RUNNING, 1, 1)
    assert state.limits == Limits(usd=2.0)
    assert (state.started_at, state.active_since, state.updated_at) == (100.0, 100.0, 100.0)
    assert type(state.params) is FrozenDict
    assert type(state.params["n"]) is FrozenList


def test_a_stopped_run_says_how_why_and_until_when() -> None:
    """Its working time is no longer counted."""
    state = state_after(ev.RunStopped(Status.PARKED, "quota", 500.0, at=130.0))

    assert (state.status, state.reason, state.due_at) == (Status.PARKED, "quota", 500.0)
    assert state.active_since is None
    assert state.spend.seconds == 30.0


def test_a_resumed_run_is_running_and_waits_count_for_nothing() -> None:
    """A run that waited a week for a human has not worked a week."""
    state = state_after(
        ev.RunStopped(Status.WAITING, "a human", 500.0, at=110.0),
        ev.RunResumed(at=10_000.0),
        ev.RunStopped(Status.WAITING, at=10_005.0),
    )
    resumed = state_after(ev.RunStopped(Status.PARKED, "x", 5.0, at=110.0), ev.RunResumed(at=200.0))

    assert state.spend.seconds == 15.0
    assert (resumed.status, resumed.reason, resumed.due_at) == (Status.RUNNING, "", None)


def test_a_clock_that_jumps_back_takes_no_time_away() -> None:
    """Negative seconds would raise the limit on time."""
    state = state_after(ev.RunStopped(Status.WAITING, at=50.0))

    assert state.spend.seconds == 0.0


def test_a_resume_of_a_failed_run_forgets_failed_effects_and_keeps_the_others() -> None:
    """What failed is tried again; what was paid for is not."""
    state = state_after(
        asked("a#1"),
        answered("a#1"),
        asked("b#1"),
        failed("b#1"),
        asked("m#1[0]/c#1"),
        failed("m#1[0]/c#1"),
        asked("d#1"),
        ev.RunStopped(Status.FAILED),
        ev.RunResumed(),
    )

    assert state.effect("a#1") is not None
    assert state.effect("d#1") is not None
    assert state.effect("b#1") is None
    assert state.effect("m#1[0]/c#1") is None


def ran(identity: str, code: int) -> list[ev.Event]:
    started = ev.EffectStarted(EffectId(identity), EffectKind.COMMAND, "d")
    return [started, answered(identity, {"code": code, "stdout": "", "stderr": ""})]


def test_a_program_that_failed_just_before_the_run_is_run_again() -> None:
    """The user has fixed what it complained about, and resumes to see it pass."""
    resumed = [ev.RunStopped(Status.FAILED), ev.RunResumed()]

    last = state_after(*ran("tests#1", 1), *ran("m#1[0]/tests#1", 2), *resumed)
    passed = state_after(*ran("tests#1", 0), *resumed)
    earlier = state_after(*ran("tests#1", 1), asked("b#1"), answered("b#1"), *resumed)
    waiting = state_after(*ran("tests#1", 1), ev.RunStopped(Status.WAITING), ev.RunResumed())

    assert last.effect("tests#1") is None
    assert last.effect("m#1[0]/tests#1") is None
    assert passed.effect("tests#1") is not None
    assert earlier.effect("tests#1") is not None
    assert waiting.effect("tests#1") is not None


@pytest.mark.parametrize("status", [Status.WAITING, Status.PARKED, Status.INTERRUPTED])
def test_a_failure_that_did_not_stop_the_run_is_replayed(status: Status) -> None:
    """Its handler continued with the result, and has to get the same one on replay."""
    state = state_after(asked("a#1"), failed("a#1"), ev.RunStopped(status), ev.RunResumed())

    assert state.effect("a#1") is not None


@pytest.mark.parametrize("kind", ["AgentQuota", "AgentStopped"])
def test_a_call_that_was_only_put_off_is_made_again(kind: str) -> None:
    """No handler has seen that there was no answer yet."""
    put_off = ev.EffectFinished(EffectId("a#1"), error={"type": kind, "message": "later"})
    state = state_after(asked("a#1"), put_off, ev.RunStopped(Status.PARKED), ev.RunResumed())

    assert state.effect("a#1") is None


def test_a_result_that_waits_at_a_gate_is_not_part_of_the_state() -> None:
    """It counts only after a human has approved it."""
    state = state_after(ev.StepWorked(Outcome.OK, {"set": {"draft": "x"}}))

    assert state.stage is Stage.GATE
    assert state.pending == PendingResult(Outcome.OK, {"set": {"draft": "x"}})
    assert state.state == {}


def test_a_replaced_attempt_keeps_the_feedback_and_forgets_its_effects() -> None:
    """The definition changed, not what the step is for."""
    state = RunState(step="a", visits={"a": 1}, feedback="be brief", adopted=True)
    evolve(state, ev.EffectStarted(EffectId("x#1"), EffectKind.ASK, "d", {}))

    evolve(state, ev.AttemptReplaced())

    assert (state.attempt, state.feedback, state.adopted) == (2, "be brief", False)
    assert state.effects == {}


@pytest.mark.parametrize("opened", [ev.AttemptFailed, ev.AttemptOpened])
def test_a_new_attempt_starts_over_with_feedback(opened: Callable[[str], ev.Event]) -> None:
    """Effects of the old attempt would answer questions the new one asks differently."""
    state = state_after(
        ev.StepBegun(),
        asked("a#1"),
        ev.ItemFinished("m#1[0]", 1),
        ev.ItemFailed("m#1[1]", "x", True),
        ev.RunResumed(),
        ev.Escalated("too long"),
        opened("be brief"),
    )

    assert (state.attempt, state.feedback, state.stage) == (2, "be brief", Stage.WORK)
    assert (state.effects, state.items, state.item_failures, state.forgiven) == ({}, {}, {}, {})
    assert state.pending is None
    assert state.spend.calls == 1


def test_a_finished_step_hands_over_to_the_next() -> None:
    """One event leaves one step and enters the other, so nothing can happen in between."""
    state = state_after(
        asked("a#1"),
        answered("a#1", usage=COST, at=120.0),
        ev.StepWorked(Outcome.OK, {}),
        ev.StepFinished(
            Outcome.OK, "a/ok", "b", {"set": {"x": [1]}}, 2, feedback="mind the tone", at=150.0
        ),
    )

    assert (state.step, state.visit, state.stage) == ("b", 1, Stage.ENTER)
    assert (state.iteration, state.attempt, state.feedback) == (2, 1, "mind the tone")
    assert state.outcome is Outcome.OK
    assert state.state == {"x": [1]}
    assert (state.effects, state.pending) == ({}, None)
    assert state.counters == {}
    assert state.spend.usd == 0.5
    assert state.visit_spend == Spend()
    assert state.spend.seconds == 50.0


def test_counters_are_reset_before_the_edge_taken_is_counted() -> None:
    """A reset that came after would lose the count of the very edge that was taken."""
    again = ev.StepFinished(Outcome.ITERATE, "a/iterate", "a", counted=True)
    state = state_after(
        again,
        again,
        ev.StepFinished(
            Outcome.OK, "a/ok", "b", counted=True, resets=("a/iterate", "a/never", "a/ok")
        ),
    )

    assert state.counters == {"a/ok": 1}


def test_a_lifted_limit_counts_from_there_and_the_count_goes_on() -> None:
    """What the edge has granted stays granted, and another bound may be adopted meanwhile."""
    again = ev.StepFinished(Outcome.ITERATE, "a/iterate", "a", counted=True)
    state = state_after(
        again,
        again,
        ev.LimitLifted("a/iterate"),
        ev.LimitLifted(ev.ROUNDS),
        ev.LimitLifted(ev.ROUNDS),
    )

    assert state.counters == {"a/iterate": 2, ev.lifts_of("a/iterate"): 2, ev.ROUNDS: 2}


def test_an_effect_is_known_from_its_start_to_its_end() -> None:
    """Between the two it is in doubt, and its process can be ended."""
    state = state_after(asked("ask#1", on_crash="fail"), ev.EffectRunning(ASK, {"pid": 5}))

    assert state.effect(ASK) == EffectRecord(
        EffectKind.ASK, "d", process={"pid": 5}, on_crash="fail"
    )

    evolve(state, answered(ASK, {"text": "hi"}))

    assert state.effect(ASK) == EffectRecord(
        EffectKind.ASK, "d", done=True, reply={"text": "hi"}, on_crash="fail"
    )
    assert state.effect("ask#2") is None


def test_a_process_of_an_unknown_effect_is_ignored() -> None:
    """Its attempt was abandoned in the meantime."""
    assert state_after(ev.EffectRunning(ASK, {"pid": 5})).effects == {}


def test_a_value_that_was_only_noted_needs_no_start() -> None:
    """Reading the clock needs no effect that could be in doubt."""
    state = state_after(answered("now#1", 5.0), answered("m#1[0]/now#1", 6.0))

    assert state.effect("now#1") == EffectRecord(EffectKind.NOW, "", done=True, reply=5.0)
    assert state.effect("m#1[0]/now#1") == EffectRecord(EffectKind.NOW, "", done=True, reply=6.0)
    assert state.spend.calls == 0


def test_a_recorded_reply_does_not_follow_what_a_handler_does_with_its_own() -> None:
    """The next replay must begin from what was recorded."""
    reply: dict[str, Any] = {"value": {"found": []}}
    item: list[Any] = []
    state = state_after(asked(ASK), answered(ASK, reply), ev.ItemFinished("m#1[0]", item))

    reply["value"]["found"].append(1)
    item.append(1)

    record = state.effect(ASK)
    assert record is not None
    assert record.reply == {"value": {"found": []}}
    assert state.items == {"m#1[0]": []}


def test_calls_are_counted_when_they_start_and_paid_when_they_end() -> None:
    """A call in progress when the process died may have been charged."""
    state = state_after(asked("a#1"), asked("b#1"), answered("a#1", usage=COST))

    assert state.spend == Spend(calls=2, known_tokens=15, known_usd=0.5)
    assert state.visit_spend == state.spend


def test_a_call_that_does_not_say_what_it_cost_makes_the_total_unknown() -> None:
    """Also when it failed."""
    assert state_after(asked("a#1"), answered("a#1")).spend.usd is None
    assert state_after(asked("a#1"), failed("a#1")).spend.usd is None
    assert state_after(asked("a#1"), failed("a#1", usage=COST)).spend.usd == 0.5


def called(identity: str, attempt: int = 1, **payload: str) -> ev.EffectStarted:
    return ev.EffectStarted(EffectId(identity), EffectKind.ASK, "d", payload or None, attempt)


def test_the_ledger_says_who_cost_what_in_which_step() -> None:
    """The user wants to know which agent was expensive, not only the total."""
    named = Usage(1, 1, 0.25, model="opus").to_json()

    state = state_after(
        called("a#1", agent="claude"),
        answered("a#1", {"text": "hi"}, usage=COST),
        called("b#1", agent="claude", model="haiku"),
        answered("b#1", {"text": "hi"}, usage=COST),
        called("c#1", agent="claude", model="haiku"),
        failed("c#1"),
        called("d#1", agent="claude", model="haiku"),
        answered("d#1", {"text": "hi", "agent": "codex"}, usage=named),
    )

    assert sorted(state.ledger.values()) == [
        LedgerEntry("a", "claude", "", 1, 10, 5, 0.5, 0, 0, 0, 1),
        LedgerEntry("a", "claude", "haiku", 2, 10, 5, 0.5, 1, 1, 0, 2),
        LedgerEntry("a", "codex", "opus", 1, 1, 1, 0.25, 0, 0, 0, 1),
    ]


def test_a_lost_call_is_charged_to_the_agent_that_was_asked() -> None:
    """Another agent that takes over must not pay for the first one."""
    state = state_after(
        called("a#1", agent="claude"),
        called("a#1", 2),
        called("a#1", 3, agent="codex"),
        answered("a#1", {"text": "hi"}, usage=COST),
    )

    assert sorted(state.ledger.values()) == [
        LedgerEntry("a", "claude", "", 2, 0, 0, 0.0, 2, 2, 0, 2),
        LedgerEntry("a", "codex", "", 1, 10, 5, 0.5, 0, 0, 0, 1),
    ]


@pytest.mark.parametrize("kind", [kind for kind in EffectKind if kind is not EffectKind.ASK])
def test_only_agents_are_paid(kind: EffectKind) -> None:
    """A command or a human costs no call, and leaves the total known."""
    state = state_after(ev.EffectStarted(ASK, kind, "d"), answered(ASK))

    assert state.spend == Spend()


def test_a_finished_item_keeps_its_result_and_not_its_effects() -> None:
    """It never runs again; a thousand items would otherwise carry all their prompts along."""
    state = state_after(
        asked("m#1[0]/a#1"),
        failed("m#1[0]/a#1"),
        ev.ItemFailed("m#1[0]", "too short", fresh=True),
        asked("m#1[0]~2/a#1"),
        asked("m#1[1]/a#1"),
        asked("m#1[10]/a#1"),
        ev.RunResumed(),
        ev.ItemFinished("m#1[0]", "done"),
    )

    assert state.items == {"m#1[0]": "done"}
    assert (state.item_failures, state.forgiven) == ({}, {})
    assert set(state.effects) == {"m#1[1]", "m#1[10]"}


def test_an_item_that_fell_short_remembers_every_reason() -> None:
    """The next attempt gets the last problem, and has a scope of its own."""
    state = state_after(
        ev.ItemFailed("m#1[0]", "too short", fresh=True),
        ev.ItemFailed("m#1[0]", "too long", fresh=True),
    )

    assert state.item_failures == {"m#1[0]": ["too short", "too long"]}
    assert item_scope("m#1[0]", 1) == "m#1[0]"
    assert item_scope("m#1[0]", 3) == "m#1[0]~3"


BUSY = [
    STARTED,
    ev.StepFinished(Outcome.OK, "a/ok", "b", {"set": {"log": [1], "n": {"x": 1.5}}}, 2, True),
    ev.StepBegun(),
    ev.AttemptFailed("too short"),
    asked("a#1", on_crash="ask"),
    ev.EffectRunning(EffectId("a#1"), {"pid": 1}),
    asked("m#1[0]/a#1"),
    failed("m#1[0]/a#1", usage=COST),
    ev.ItemFailed("m#1[1]", "x", fresh=True),
    ev.ItemFinished("m#1[2]", {"deep": [1]}),
    ev.RunResumed(at=140.5),
    ev.Escalated("too long", "b/iterate", Outcome.FAIL, {"set": {"y": [1]}}),
    ev.RunStopped(Status.WAITING, "a human", 600.25, at=150.125),
]
