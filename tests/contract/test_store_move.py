"""Runs move between stores, both ways, and a mover that is killed anywhere loses nothing."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from signoff.app.runs import runs
from signoff.app.runs.runs import move_run, public_address
from signoff.core.digest import text_digest
from signoff.core.errors import NameTaken, RunBusy, RunMoved, UnknownName
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.core.spend import LedgerEntry
from signoff.runtime.owner import this_process
from signoff.runtime.run_transfer import read_copy
from signoff.runtime.store_port import Store
from signoff.store.postgres.store import PostgresStore
from signoff.store.sqlite import MemoryStore, SqliteStore
from signoff.testing.doubles import Countdown, CrashingStore, When
from tests.store_suite.journal_writer import new_request, start_run
from tests.stubs.postgres import PostgresServer

TEXT = "a long text with \x01 and \U0001f680"
TO = "postgresql://bob:secret@host/runs?schema=team&password=other"


@pytest.fixture(params=["to the server", "from the server", "between files"])
def stores(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer
) -> Iterator[tuple[Store, Store]]:
    file = SqliteStore(tmp_path / "signoff.db")
    other: Store = (
        MemoryStore() if request.param == "between files" else PostgresStore(postgres.new_schema())
    )
    with closing(file), closing(other):
        yield (other, file) if request.param == "from the server" else (file, other)


def _run_that_waits(store: Store, name: str = "run") -> None:
    digest = text_digest(TEXT)
    run = start_run(store, name, needs=("gpu",))
    run.append(blobs={digest: TEXT}, events=f'[{{"text":{{"$blob":"{digest}"}}}}]')
    run.append(opened=[new_request("a#1", prompt=TEXT), new_request("b#1")])
    first = store.items(name)[0]
    store.answer(first.id, '{"value":"yes"}', "ann", 5.0, "shown")
    run.append(used=[first.id], ledger=[LedgerEntry("draft", "claude", "m", 1, 10, 20, 0.5, 0, 0)])
    store.keep_late(run.run, "ask#1", 1, TEXT)
    run.wait(reason="waits for ann", due_at=9e9)


def test_a_run_is_the_same_in_its_new_store(stores: tuple[Store, Store]) -> None:
    """Its journal, requests, spend, texts and late replies all come along."""
    source, target = stores
    start_run(target, "other").append(opened=[new_request()])
    _run_that_waits(source)
    before = read_copy(source, source.row("run"))

    moved = move_run(source, target, "run", TO)

    after = read_copy(target, target.row("run"))
    assert after.to_text() == before.to_text()
    assert (moved.run, moved.commits, moved.requests) == ("run", 5, 2)
    assert [(item.effect, item.state) for item in after.items] == [("a#1", "used"), ("b#1", "open")]
    assert target.row("run").owner is None
    fence = target.take(target.row("run").id, this_process(), lambda _owner: None)
    assert fence == target.row("run").fence


def test_the_old_store_remembers_where_a_run_went(stores: tuple[Store, Store]) -> None:
    """`show` must not say that there never was such a run; a password is not remembered."""
    source, target = stores
    _run_that_waits(source)

    move_run(source, target, "run", TO)

    with pytest.raises(RunMoved) as caught:
        source.row("run")
    assert caught.value.target == "postgresql://bob@host/runs?schema=team"
    assert source.rows() == []
    assert source.items() == []


def test_a_run_can_come_back(stores: tuple[Store, Store]) -> None:
    """A team that changes its mind moves back."""
    source, target = stores
    _run_that_waits(source)
    before = read_copy(source, source.row("run")).to_text()

    move_run(source, target, "run", TO)
    move_run(target, source, "run", "signoff.db")

    assert read_copy(source, source.row("run")).to_text() == before
    with pytest.raises(RunMoved, match=r"signoff\.db"):
        target.row("run")


def test_a_running_run_is_not_moved(stores: tuple[Store, Store]) -> None:
    """Its process would write into nothing."""
    source, target = stores
    owner = this_process()
    source.beat(owner)
    run = start_run(source)
    source.take(run.run, owner, lambda _owner: False)

    with pytest.raises(RunBusy, match="is running"):
        move_run(source, target, "run", TO)

    assert source.row("run").owner == owner.id


def test_a_run_of_the_same_name_is_not_replaced(stores: tuple[Store, Store]) -> None:
    """The other store may have a run that only has the same name."""
    source, target = stores
    _run_that_waits(source)
    start_run(target, "run")

    with pytest.raises(NameTaken):
        move_run(source, target, "run", TO)

    assert source.row("run").status is Status.WAITING
    assert source.row("run").owner is None


def test_an_answer_that_arrives_meanwhile_is_moved_too(stores: tuple[Store, Store]) -> None:
    """A human does not know that a run is being moved."""
    source, target = stores
    _run_that_waits(source)

    class AnsweredMeanwhile(CrashingStore):
        def stage(self, name: str, document: str) -> None:
            self.inner.stage(name, document)
            if open_items := source.items("run"):
                source.answer(open_items[0].id, '{"value":"no"}', "bob", 6.0, "shown")

    move_run(source, AnsweredMeanwhile(target, at=0), "run", TO)

    (answered,) = target.items("run", state=(ItemState.ANSWERED,))
    assert (answered.answer, answered.answered_by) == ('{"value":"no"}', "bob")


class _KilledError(BaseException):
    pass


def _kill() -> None:
    raise _KilledError


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_mover_that_is_killed_at_any_write_loses_and_doubles_nothing(
    stores: tuple[Store, Store], when: When, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut in the middle: starting the move again finishes it."""
    # The process that is killed here is this one, which must not be found alive.
    monkeypatch.setattr(runs, "is_alive", lambda _owner: False)
    source, target = stores
    kills, at = 0, 0
    while True:
        at += 1
        name = f"run-{at}"
        _run_that_waits(source, name)
        before = read_copy(source, source.row(name)).to_text()
        countdown = Countdown(at, when, _kill)
        try:
            crashing = partial(CrashingStore, at=0, countdown=countdown)
            move_run(crashing(source), crashing(target), name, TO)
        except _KilledError:
            kills += 1
            assert [_has(source, name), _has(target, name)].count(True) <= 1
            if not _has(target, name):
                move_run(source, target, name, TO)
        assert (_has(source, name), _has(target, name)) == (False, True)
        assert read_copy(target, target.row(name)).to_text() == before
        assert target.staged(name) is None
        if countdown.writes < at:
            break
    assert kills >= 4


def _has(store: Store, name: str) -> bool:
    try:
        return bool(store.row(name))
    except UnknownName:
        return False


def test_an_address_is_remembered_without_its_password() -> None:
    """Everyone who sees a run's history would see it; the user is part of what to set."""
    assert public_address("signoff.db") == "signoff.db"
    assert public_address("postgresql://host/x") == "postgresql://host/x"
    assert public_address(TO) == "postgresql://bob@host/runs?schema=team"
    # What is left is still an address.
    secret_first = "postgresql://bob@host/x?password=secret&sslpassword=other&schema=team"
    assert public_address(secret_first) == "postgresql://bob@host/x?schema=team"
