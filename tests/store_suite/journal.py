"""Tests of journals and lists of runs: commits are ordered, atomic and have one writer."""

from __future__ import annotations

import pytest

from signoff.core.errors import UnknownName
from signoff.core.outcome import Status
from signoff.core.spend import LedgerEntry
from signoff.runtime.store_port import Store
from tests.store_suite.journal_writer import (
    ANN,
    START,
    JournalWriter,
    StoreFixture,
    new_request,
    start_run,
)


class JournalTests(StoreFixture):
    """A run's journal, its row and its checkpoints."""

    def test_the_first_commit_creates_the_run(self, store: Store) -> None:
        """A run without a row, or a row without its first event, could never be resumed."""
        run = JournalWriter(store)

        result = run.begin(step="plan")

        row = store.row("run")
        assert result.accepted
        assert result.run == row.id
        assert (row.name, row.workflow, row.target) == ("run", "review", "pkg:FLOW")
        assert (row.definition, row.owner, row.cancel) == ("d1", ANN.id, None)
        assert (row.head, row.fence, row.status) == (1, 1, Status.RUNNING)
        assert (row.step, row.iteration) == ("plan", 1)
        assert (row.created_at, row.updated_at) == (START, START + 1)
        assert store.description(row.id) == '{"name": "review"}'
        assert run.events() == ['[{"e":"run-1"}]']

    def test_an_existing_name_is_refused_and_its_run_is_unchanged(self, store: Store) -> None:
        """A new run under an old name would overwrite a user's work."""
        first = start_run(store)
        second = JournalWriter(store)

        result = second.begin(opened=[new_request()], step="other")

        assert not result.accepted
        assert store.row("run").step == "draft"
        assert first.events() == ['[{"e":"run-1"}]']
        assert len(store.rows()) == 1
        assert store.items() == []

    def test_commits_are_returned_in_order(self, store: Store) -> None:
        """Events folded in another order give another state."""
        run = start_run(store)
        other = start_run(store, "other")

        for _ in range(11):
            run.append()
            other.append()

        journal = store.journal(run.run)
        assert [row.seq for row in journal] == list(range(1, 13))
        assert [row.events for row in journal] == [f'[{{"e":"run-{n}"}}]' for n in range(1, 13)]
        assert [row.seq for row in store.journal(run.run, after=10)] == [11, 12]

    def test_a_commit_updates_the_row(self, store: Store) -> None:
        """Lists of runs are read from the row; a stale row would show something false."""
        run = start_run(store)

        run.append(
            status=Status.PARKED, step="judge", iteration=3, reason="quota", due_at=9.5, at=77.0
        )

        row = store.row("run")
        assert (row.status, row.step, row.iteration) == (Status.PARKED, "judge", 3)
        assert (row.reason, row.due_at, row.updated_at, row.head) == ("quota", 9.5, 77.0, 2)

    def test_a_resumed_run_is_no_longer_due(self, store: Store) -> None:
        """Otherwise it would be resumed again and again for an old reason."""
        run = start_run(store)
        run.append(status=Status.PARKED, reason="quota", due_at=9.5)

        run.append()

        row = store.row("run")
        assert (row.status, row.reason, row.due_at) == (Status.RUNNING, "", None)

    @pytest.mark.parametrize(("head", "fence"), [(0, 1), (2, 1), (1, 0), (1, 2)])
    def test_a_commit_with_a_wrong_head_or_fence_changes_nothing(
        self, store: Store, head: int, fence: int
    ) -> None:
        """This keeps a runner that lost its run from writing into the new owner's journal."""
        run = start_run(store)
        before = store.row("run")
        entry = LedgerEntry("draft", "claude", "", 1, 10, 20, 0.5, 0, 0)

        result = run.put(
            run.next(
                head=head,
                fence=fence,
                status=Status.COMPLETED,
                blobs={"ab" * 32: "text"},
                opened=[new_request()],
                ledger=[entry],
                checkpoint="{}",
                release=True,
            )
        )

        assert not result.accepted
        assert store.row("run") == before
        assert run.events() == ['[{"e":"run-1"}]']
        assert store.items() == []
        assert store.ledger(run.run) == []
        assert store.load("run").checkpoint is None

    def test_a_refused_commit_does_not_affect_its_batch(self, store: Store) -> None:
        """One fenced run must not stop the other runs of its process."""
        one, fenced, two = (start_run(store, name) for name in ("one", "fenced", "two"))
        taken = JournalWriter(store, "one")

        results = store.commit(
            [one.next(), fenced.next(fence=7), taken.first(), two.next(opened=[new_request()])]
        )

        assert [v.accepted for v in results] == [True, False, False, True]
        assert [store.row(name).head for name in ("one", "fenced", "two")] == [2, 1, 2]
        assert [item.run for item in store.items()] == ["two"]

    def test_load_returns_the_last_checkpoint_and_later_commits(self, store: Store) -> None:
        """A run of ten thousand steps resumes as fast as one of ten."""
        run = start_run(store)
        run.append(checkpoint='{"n":2}')
        run.append()
        run.append(checkpoint='{"n":4}')
        run.append()

        stored = store.load("run")

        assert (stored.checkpoint, stored.checkpoint_seq) == ('{"n":4}', 4)
        assert [row.seq for row in stored.tail] == [5]
        assert len(store.journal(run.run)) == 5

    def test_an_unknown_name_lists_the_existing_runs(self, store: Store) -> None:
        """Users mistype names."""
        start_run(store, "report")

        with pytest.raises(UnknownName, match="report"):
            store.load("repotr")
        with pytest.raises(UnknownName, match="report"):
            store.row("repotr")

    def test_a_changed_definition_can_be_adopted(self, store: Store) -> None:
        """A fixed handler lets a failed run continue."""
        run = start_run(store)
        other = start_run(store, "other")

        store.adopt(run.run, "d2", '{"name": "fixed"}')

        assert store.row("run").definition == "d2"
        assert store.description(run.run) == '{"name": "fixed"}'
        assert store.row("other").definition == "d1"
        assert store.description(other.run) == '{"name": "review"}'
        assert run.append().accepted


class ListingTests(StoreFixture):
    """Lists of runs, and their filters."""

    def test_runs_are_listed_newest_first(self, store: Store) -> None:
        """`latest` is the first of them."""
        for name in ("a", "b", "c"):
            start_run(store, name)
        start_run(store, "a2").append()

        assert [row.name for row in store.rows()] == ["a2", "c", "b", "a"]
        assert [row.name for row in store.rows(limit=2)] == ["a2", "c"]

    def test_runs_are_found_by_status(self, store: Store) -> None:
        """Waiting runs have to be found among thousands that have ended."""
        start_run(store, "running")
        start_run(store, "waiting").wait()
        start_run(store, "done").append(status=Status.COMPLETED, release=True)

        waiting = store.rows(status=[Status.WAITING])
        ended_or_running = store.rows(status=[Status.COMPLETED, Status.RUNNING])

        assert [row.name for row in waiting] == ["waiting"]
        assert [row.name for row in ended_or_running] == ["done", "running"]

    def test_runs_are_listed_page_by_page_and_found_by_text(self, store: Store) -> None:
        """A page shows thousands of runs a few at a time; text is text, not a pattern."""
        for name in ("alpha", "beta_1", "gamma-ALPHA"):
            start_run(store, name)
        first = store.rows(limit=2)

        def names(text: str) -> list[str]:
            return [row.name for row in store.rows(text=text)]

        assert [row.name for row in store.rows(limit=2, before=first[-1].id)] == ["alpha"]
        assert store.rows(workflow=first[0].workflow) == store.rows()
        assert store.rows(workflow="another") == []
        assert names("Alpha") == ["gamma-ALPHA", "alpha"]
        assert names("a_1") == ["beta_1"]
        assert [names(sign) for sign in ("%", "\\", "\ud800")] == [[], [], []]

    def test_runs_are_found_by_due_time(self, store: Store) -> None:
        """`resume --due` resumes these when they are due and not earlier."""
        start_run(store, "early").append(status=Status.PARKED, due_at=100.0)
        start_run(store, "late").append(status=Status.PARKED, due_at=200.0)
        start_run(store, "deadline").append(status=Status.WAITING, due_at=150.0)
        start_run(store, "whenever").append(status=Status.PARKED)

        def due(before: float, *status: Status) -> list[str]:
            return [row.name for row in store.rows(due_before=before, status=status)]

        assert due(99.9) == []
        assert due(100.0) == ["early"]
        assert due(1000.0) == ["deadline", "late", "early"]
        assert due(1000.0, Status.PARKED) == ["late", "early"]
