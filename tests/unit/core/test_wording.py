"""Which recorded request a replayed one is taken for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from signoff.core import events as ev
from signoff.core.checkpoint import state_from_json, state_to_json
from signoff.core.digest import digest
from signoff.core.effects import Effect, EffectId, EffectKind
from signoff.core.fold import fold
from signoff.core.run_state import RunState
from signoff.core.wording import replay_digest, request_digest

_ID = EffectId("ask#1")
_SCHEMA = {"type": "object"}
_RECORDED = {"agent": "writer", "prompt": "Please do it.", "schema": _SCHEMA}


def _state() -> RunState:
    """A run whose call was recorded by a version that took the digest of every word."""
    started = ev.EffectStarted(_ID, EffectKind.ASK, digest(_RECORDED), _RECORDED)
    return fold([ev.RunStarted("w", "d", "step", {}), started])


def _request(**changes: object) -> Effect:
    payload = {"agent": "writer", "prompt": "Do it.", "schema": _SCHEMA, **changes}
    return Effect(EffectKind.ASK, "ask", payload, material=["it"])


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_reworded_prompt_of_the_products_own_is_the_recorded_request(checkpoint: bool) -> None:
    """Otherwise an upgrade would stop every run in progress as not deterministic."""
    state = _state()
    if checkpoint:
        state = state_from_json(state_to_json(state))

    assert replay_digest(state, _ID, _request(), {}) == digest(_RECORDED)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_request_with_another_schema_is_a_new_one(checkpoint: bool) -> None:
    """The recorded answer would not have the form that the handler now expects."""
    state = _state()
    if checkpoint:
        state = state_from_json(state_to_json(state))
    request = _request(schema={"type": "array"})

    assert replay_digest(state, _ID, request, {}) == request_digest(request)


def test_a_reworded_prompt_after_a_changed_definition_is_a_new_request() -> None:
    """The definition may have changed what the prompt asks for."""
    state = replace(_state(), adopted=True)

    assert replay_digest(state, _ID, _request(), {}) == request_digest(_request())


def test_recording_a_call_computes_no_shape() -> None:
    """Every agent call would pay for a digest that only a replay after an upgrade needs."""
    record = _state().effect(_ID)

    assert record is not None
    assert record.shape == ""
    assert record.request == {"schema": _SCHEMA}


def test_the_length_of_the_shared_part_does_not_identify_a_request() -> None:
    """It is about prices, follows from the wording, and older versions did not record it."""
    request = _request(shared=3)

    assert request_digest(request) == request_digest(_request())
    assert replay_digest(_state(), _ID, request, {}) == digest(_RECORDED)


def test_an_option_that_is_described_now_is_the_recorded_one() -> None:
    """A run that waits for its human is not stopped by an upgrade that explains the options."""
    plain = {"kind": "choice", "prompt": "Go on?", "options": [{"label": "stop"}]}
    recorded = Effect(EffectKind.WAIT, "ask", plain, material=["it"])
    started = ev.EffectStarted(_ID, EffectKind.WAIT, request_digest(recorded), plain)
    state = fold([ev.RunStarted("w", "d", "step", {}), started])

    def asked(label: str) -> Effect:
        options = [{"label": label, "description": "end it"}]
        return recorded._replace(payload={**plain, "prompt": "Continue?", "options": options})

    assert replay_digest(state, _ID, asked("stop"), {}) == request_digest(recorded)
    assert replay_digest(state, _ID, asked("end"), {}) == request_digest(asked("end"))
