"""Resumes journals that were recorded by releases."""

import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Status
from signoff.core.spend import Spend
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Store
from signoff.testing import FrozenClock, ScriptedAgent
from tests.replay.recordings import recordings_of, restore
from tests.replay.story import FISH, PUBLISH, STORY, agent, tell
from tests.run_stores import moved_here, open_address

PYTHON = (3, 11)
"""Under which the stories were recorded; another one may put the same code in other words."""

END = {
    "facts": [
        "Somebody on A fact about cats. ",
        "Somebody on A fact about dogs. too short",
        "trout: Somebody on A fact about fish. ",
    ],
    "long": "fact " * 2000,
    "draft": "Somebody on Draft 2, try 2.",
    "log": ["draft 1", "draft 2"],
    "try": 2,
    "judged": 2,
    "chance": True,
    "_gate": {"step": "sign", "option": "yes", "input": ""},
}


@pytest.fixture(params=recordings_of("story"), ids=lambda path: path.stem)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A database as a release left it."""
    path = tmp_path / "signoff.db"
    restore(request.param, path)
    with closing(open_address(moved_here(path))) as store:
        yield store


@pytest.fixture
def now() -> ScriptedAgent:
    return agent("now")


@pytest.fixture
async def engine(store: Store, now: ScriptedAgent) -> AsyncIterator[Engine]:
    clock = FrozenClock(1_800_000_000.0)
    async with Engine(store, agents={"claude": now}, clock=clock) as engine:
        yield engine


async def test_a_recorded_run_continues_to_the_same_end(store: Store, engine: Engine) -> None:
    """An upgrade must not break a run that is in progress."""
    result = await tell(engine, store, answers={FISH: "trout", PUBLISH: "yes"})

    values = {key: _anybody(value) for key, value in result.state.items() if key != "began"}
    assert (result.status, values) == (Status.COMPLETED, END)
    assert result.iteration == 2
    assert not store.items("story")


async def test_recorded_calls_are_not_repeated(
    store: Store, engine: Engine, now: ScriptedAgent
) -> None:
    """The user has already paid for them."""
    recorded = "".join(row.events for row in store.journal(store.row("story").id))

    result = await tell(engine, store, answers={FISH: "trout", PUBLISH: "yes"})

    assert not [prompt for prompt in now.prompts if f'"then on {prompt}"' in recorded]
    entries = store.ledger(store.row("story").id)
    assert sum(entry.calls for entry in entries) == result.spend.calls
    assert result.spend.known_usd == pytest.approx(sum(entry.usd for entry in entries))
    assert result.spend != Spend()


@pytest.mark.skipif(sys.version_info[:2] != PYTHON, reason="code reads otherwise in this Python")
async def test_a_definition_that_has_not_changed_is_the_same_to_every_version(store: Store) -> None:
    """Users should not have to adopt a change after an upgrade."""
    assert store.row("story").definition == STORY.digest


def _anybody(value: Any) -> Any:
    if isinstance(value, list):
        return [_anybody(each) for each in value]
    if isinstance(value, str):
        return value.replace("then on", "Somebody on").replace("now on", "Somebody on")
    return value
