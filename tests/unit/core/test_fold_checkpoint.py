from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.codec import decode, encode
from signoff.core.errors import StoreDamaged
from signoff.core.fold import fold, state_from_json, state_to_json
from signoff.core.frozen import CHECKPOINT_DEPTH, STORED_DEPTH, FrozenDict, FrozenList
from tests.unit.core.test_fold import BUSY, STARTED, answered, asked


@pytest.mark.parametrize("length", range(len(BUSY) + 1))
def test_a_checkpoint_is_the_state_and_nothing_else(length: int) -> None:
    """A run resumed from a checkpoint continues like one resumed from its journal."""
    state = fold(BUSY[:length])
    blobs: dict[str, str] = {}

    stored = encode(state_to_json(state), blobs, CHECKPOINT_DEPTH)
    back = state_from_json(decode(stored, blobs.__getitem__))

    assert back == state
    assert fold(BUSY[length:], back) == fold(BUSY)


def test_what_comes_from_a_checkpoint_is_read_only() -> None:
    """Whether a handler may change its state must not depend on where it came from."""
    stored = encode(state_to_json(fold(BUSY)), {})

    back = state_from_json(decode(stored, str))

    assert type(back.state) is FrozenDict
    assert type(back.state["log"]) is FrozenList
    assert type(back.params) is FrozenDict


def test_whatever_can_be_recorded_can_be_put_into_a_checkpoint() -> None:
    """A reply as deep as an event can hold must not stop the run at its next checkpoint."""
    deep: Any = "core"
    for _ in range(STORED_DEPTH - 1):
        deep = [deep]
    events = [
        replace(STARTED, params={"n": deep[0]}),
        asked("m#1[0]/a#1"),
        answered("m#1[0]/a#1", deep),
        ev.ItemFinished("m#1[1]", deep),
    ]
    for event in events:
        encode(ev.to_json(event), {})

    state = fold(events)
    stored = encode(state_to_json(state), {}, CHECKPOINT_DEPTH)

    assert state_from_json(decode(stored, str)) == state


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("params"),
        lambda data: data.update(stage="asleep"),
        lambda data: data.update(colour=1),
        lambda data: data.update(effects=[]),
        lambda data: data.update(limits={"dollars": 5}),
        lambda data: data.update(ledger=[["draft"]]),
    ],
    ids=["missing", "enum", "unknown", "type", "limits", "ledger"],
)
def test_a_damaged_checkpoint_is_reported_as_damaged(damage: Callable[[Any], Any]) -> None:
    """The operator must look at the database, not at the workflow."""
    data = state_to_json(fold(BUSY))
    damage(data)

    with pytest.raises(StoreDamaged, match="checkpoint"):
        state_from_json(data)
