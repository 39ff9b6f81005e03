import json
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.codec import decode, encode
from signoff.core.effects import EffectId, EffectKind
from signoff.core.errors import NotSerialisable, StoreDamaged, StoreTooNew
from signoff.core.outcome import Outcome, Status
from tests.tables import table

ASK = EffectId("ask#1")

FULL: list[ev.Event] = [
    ev.RunStarted("flow", "digest", "draft", {"n": 1}, {"usd": 1.5}, "seed", at=1.25),
    ev.RunResumed(at=2.0),
    ev.RunStopped(Status.PARKED, "out of quota", 99.5, at=3.0),
    ev.LimitsChanged({"calls": 3}, at=4.0),
    ev.ParamsCorrected({"words": 3}),
    ev.AgentSwitched("writer", "manual", at=4.5),
    ev.DefinitionAdopted("other", at=5.0),
    ev.StepBegun(at=6.0),
    ev.StepWorked(Outcome.OK, {"set": {"a": 1}}, at=7.0),
    ev.AttemptFailed("too short", at=8.0),
    ev.Escalated("too short", "a/iterate", Outcome.FAIL, {"append": {"log": [1]}}, at=9.0),
    ev.AttemptOpened("be brief", at=10.0),
    ev.AttemptReplaced(at=10.5),
    ev.LimitLifted("a/iterate", at=11.0),
    ev.StepFinished(
        Outcome.ITERATE, "a/iterate", "b", {"set": {"a": 1}}, 2, True, ("a/fail",), "why", at=12.0
    ),
    ev.EffectStarted(ASK, EffectKind.ASK, "digest", {"prompt": "hi"}, 2, "ask", at=13.0),
    ev.EffectRunning(ASK, {"pid": 5}, at=14.0),
    ev.EffectAttemptFailed(ASK, {"type": "x"}, {"usd": 0.5}, at=14.5),
    ev.EffectFinished(ASK, {"text": "hi"}, {"type": "x"}, {"usd": 0.5}, 7, at=15.0),
    ev.ItemFinished("critics#1[0]", {"text": "hi"}, at=16.0),
    ev.ItemFailed("critics#1[0]", "too short", True, at=17.0),
    ev.Logged("half way", "critics#1[0]", at=18.0),
]
BARE: list[ev.Event] = [
    ev.RunStarted("flow", "digest", "draft", {}),
    ev.RunStopped(Status.COMPLETED),
    ev.StepWorked(Outcome.OK),
    ev.Escalated("too short"),
    ev.StepFinished(Outcome.OK, "a/ok"),
    ev.EffectStarted(ASK, EffectKind.NOW, ""),
    ev.EffectFinished(ASK),
    ev.ItemFinished("critics#1[0]"),
    ev.ItemFailed("critics#1[0]", "x"),
]


def tag(event: ev.Event) -> str:
    return event.tag


def test_every_kind_of_event_is_tried_below() -> None:
    """A new kind without an example here would be stored untested."""
    assert {event.tag for event in FULL} == set(ev.KINDS)


@table("event", FULL)
def test_an_event_comes_back_from_the_journal_as_it_was(event: ev.Event) -> None:
    """A run is rebuilt from its events alone."""
    stored = encode(ev.to_json(event), {})

    back = ev.from_json(decode(stored, lambda _digest: ""))

    assert type(back) is type(event)
    assert back == event


@pytest.mark.parametrize("event", BARE, ids=tag)
def test_a_default_is_not_stored_and_comes_back(event: ev.Event) -> None:
    """A field that a release adds keeps its journals readable, and a journal stays small."""
    stored = ev.to_json(event)

    assert None not in stored.values()
    assert {} not in stored.values() or event.tag == "run_started"
    assert "at" not in stored
    assert ev.from_json(json.loads(json.dumps(stored))) == event


def test_enums_come_back_as_themselves() -> None:
    """The rules compare with `is`."""
    finished = ev.from_json({"e": "step_finished", "outcome": "ok", "way": "a/ok"})
    stopped = ev.from_json({"e": "run_stopped", "status": "parked"})
    started = ev.from_json({"e": "effect_started", "id": "ask#1", "kind": "ask", "digest": ""})

    assert isinstance(finished, ev.StepFinished)
    assert finished.outcome is Outcome.OK
    assert isinstance(stopped, ev.RunStopped)
    assert stopped.status is Status.PARKED
    assert isinstance(started, ev.EffectStarted)
    assert started.kind is EffectKind.ASK


@pytest.mark.parametrize("reply", [False, 0, "", [], {}, 0.0])
def test_an_empty_reply_is_still_a_reply(reply: Any) -> None:
    """`false` from an agent is an answer; losing it would give the replay None."""
    event = ev.EffectFinished(ASK, reply)

    back = ev.from_json(json.loads(json.dumps(ev.to_json(event))))

    assert isinstance(back, ev.EffectFinished)
    assert back.reply == reply
    assert type(back.reply) is type(reply)


def test_a_value_that_cannot_be_compared_is_refused_when_it_is_stored() -> None:
    """An array's `!=` returns no boolean; the author must learn that it cannot be stored."""

    class Array:
        def __ne__(self, other: object) -> bool:
            raise ValueError("ambiguous")

    event = ev.ItemFinished("critics#1[0]", Array())

    with pytest.raises(NotSerialisable):
        encode(ev.to_json(event), {})


@pytest.mark.parametrize(
    "data", [{"e": "run_forked"}, {"e": None}, {"e": "run_resumed", "colour": 1}], ids=str
)
def test_an_event_of_a_newer_signoff_asks_for_an_upgrade(data: dict[str, Any]) -> None:
    """Skipping it would rebuild a different run."""
    with pytest.raises(StoreTooNew, match="upgrade signoff"):
        ev.from_json(data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        "run_resumed",
        {"e": "run_stopped"},
        {"e": "run_stopped", "status": "asleep"},
        {"e": "step_finished", "outcome": 5, "way": "x"},
        {"e": "step_finished", "outcome": "ok", "way": "x", "resets": 5},
        {"e": "effect_started", "id": "a", "kind": "dance", "digest": ""},
    ],
    ids=str,
)
def test_a_damaged_event_is_reported_as_damaged(data: Any) -> None:
    """The operator must look at the database, not at the workflow."""
    with pytest.raises(StoreDamaged):
        ev.from_json(data)
