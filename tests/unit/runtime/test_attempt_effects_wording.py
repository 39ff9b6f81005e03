"""What identifies a request on replay."""

from __future__ import annotations

from typing import Any

import pytest

from signoff.core.effects import Effect, EffectKind
from signoff.runtime.attempt_effects import request_digest

_SCHEMA = {"type": "object"}


def _request(*, own_schema: bool = False, **changes: object) -> Effect:
    payload = {"agent": "writer", "prompt": "Do it.", "schema": _SCHEMA, **changes}
    return Effect(EffectKind.ASK, "ask", payload, material=["it"], own_schema=own_schema)


@pytest.mark.parametrize(
    "wording", [{"prompt": "Please do it."}, {"system": "You write."}, {"shared": 3}]
)
def test_a_reworded_prompt_of_the_products_own_is_the_same_request(wording: dict[str, Any]) -> None:
    """Otherwise an upgrade would stop every run in progress as not deterministic."""
    assert request_digest(_request(**wording)) == request_digest(_request())


def test_a_request_about_something_else_is_another_one() -> None:
    """The recorded answer is about something else."""
    other = _request()._replace(material=["that"])

    assert request_digest(other) != request_digest(_request())


def test_every_character_of_a_users_prompt_counts() -> None:
    """Only the user knows what it is about."""
    users, other = (_request(prompt=each)._replace(material=None) for each in ("Do.", "Do!"))

    assert request_digest(users) != request_digest(other)


@pytest.mark.parametrize("own_schema", [False, True])
def test_a_schema_counts_unless_it_is_the_products_wording(own_schema: bool) -> None:
    """The recorded answer would not have the form that the user's handler expects."""
    one = _request(own_schema=own_schema)
    other = _request(own_schema=own_schema, schema={"type": "array"})

    assert (request_digest(one) == request_digest(other)) is own_schema


def test_an_option_may_be_described_better_but_not_be_called_otherwise() -> None:
    """A run that waits for its human is not stopped by an upgrade that explains the options."""

    def asked(label: str, description: str) -> str:
        option = {"label": label, "description": description}
        payload = {"kind": "choice", "prompt": "Go on?", "options": [option]}
        return request_digest(Effect(EffectKind.WAIT, "ask", payload, material=["it"]))

    assert asked("stop", "end it") == asked("stop", "end the run")
    assert asked("stop", "end it") != asked("end", "end it")
