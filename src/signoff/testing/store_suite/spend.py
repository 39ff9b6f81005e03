"""What a store promises about money, and about replies that came too late."""

from __future__ import annotations

import pytest

from signoff.runtime.ports import LedgerEntry, Store
from signoff.testing.store_suite.opening import Opening
from signoff.testing.store_suite.scribe import begun


def _spent(step: str = "draft", agent: str = "claude", model: str = "m") -> LedgerEntry:
    return LedgerEntry(step, agent, model, 1, 10, 20, 0.25, 0, 1)


class SpendPromises(Opening):
    """The ledger, and late replies."""

    def test_what_calls_cost_adds_up_by_step_agent_and_model(self, store: Store) -> None:
        """The bill is the sum of all calls, unknown ones counted as such."""
        run = begun(store)

        run.go_on(ledger=[_spent(), _spent(), _spent("judge")])
        run.go_on(ledger=[_spent(), _spent(agent="codex"), _spent(model="")])

        assert store.ledger(run.run) == [
            LedgerEntry("draft", "claude", "", 1, 10, 20, 0.25, 0, 1),
            LedgerEntry("draft", "claude", "m", 3, 30, 60, 0.75, 0, 3),
            LedgerEntry("draft", "codex", "m", 1, 10, 20, 0.25, 0, 1),
            LedgerEntry("judge", "claude", "m", 1, 10, 20, 0.25, 0, 1),
        ]

    def test_each_run_pays_for_itself(self, store: Store) -> None:
        """A ceiling is one run's, and so is a bill."""
        one, two = begun(store, "one"), begun(store, "two")

        one.go_on(ledger=[_spent()])

        assert len(store.ledger(one.run)) == 1
        assert store.ledger(two.run) == []

    def test_small_amounts_are_not_rounded_away(self, store: Store) -> None:
        """Ten thousand cheap calls are not free."""
        run = begun(store)
        cheap = LedgerEntry("draft", "local", "", 1, 1, 1, 0.00001, 0, 0)

        for _ in range(10):
            run.go_on(ledger=[cheap] * 10)

        (entry,) = store.ledger(run.run)
        assert entry.calls == 100
        assert entry.usd == pytest.approx(0.001)

    def test_a_late_reply_is_kept_for_the_new_owner(self, store: Store) -> None:
        """It was paid for; the runner that takes the run over uses it."""
        run, other = begun(store, "one"), begun(store, "two")

        store.keep_late(run.run, "ask#1", 1, '{"reply":"a"}')
        store.keep_late(run.run, "ask#1", 2, '{"reply":"b"}')
        store.keep_late(other.run, "ask#1", 1, '{"reply":"c"}')

        assert store.late(run.run) == {
            ("ask#1", 1): '{"reply":"a"}',
            ("ask#1", 2): '{"reply":"b"}',
        }
        assert store.late(other.run) == {("ask#1", 1): '{"reply":"c"}'}

    def test_a_late_reply_leaves_the_journal_alone(self, store: Store) -> None:
        """It comes from a runner that may no longer write there."""
        run = begun(store)
        before = store.row("run")

        store.keep_late(run.run, "ask#1", 1, "{}")

        assert store.row("run") == before
        assert run.go_on().accepted
