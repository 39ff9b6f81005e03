"""What a store promises about money, and about replies that came too late."""

from __future__ import annotations

from signoff.core.spend import LedgerEntry
from signoff.runtime.store_port import Store
from signoff.testing.store_suite.fixture import StoreFixture
from signoff.testing.store_suite.journal_writer import start_run


def _spent(step: str = "draft", agent: str = "claude", model: str = "m") -> LedgerEntry:
    return LedgerEntry(step, agent, model, 1, 10, 20, 0.25, 0, 1)


class SpendTests(StoreFixture):
    """The ledger, and late replies."""

    def test_the_newest_bill_stands_by_step_agent_and_model(self, store: Store) -> None:
        """A run that rests, is resumed and rests again must not be billed twice."""
        run = start_run(store)
        more = _spent()._replace(calls=3, usd=0.75)

        run.append(ledger=[_spent(), _spent("judge")])
        run.append()
        run.append(ledger=[_spent("judge"), more, _spent(agent="codex"), _spent(model="")])

        assert store.ledger(run.run) == [
            _spent(model=""),
            more,
            _spent(agent="codex"),
            _spent("judge"),
        ]

    def test_each_run_pays_for_itself(self, store: Store) -> None:
        """A ceiling is one run's, and so is a bill."""
        one, two = start_run(store, "one"), start_run(store, "two")

        one.append(ledger=[_spent()])

        assert len(store.ledger(one.run)) == 1
        assert store.ledger(two.run) == []

    def test_small_amounts_are_not_rounded_away(self, store: Store) -> None:
        """Ten thousand cheap calls are not free."""
        run = start_run(store)
        cheap = LedgerEntry("draft", "local", "", 1, 1, 1, 0.00001, 0, 0)

        run.append(ledger=[cheap])

        assert store.ledger(run.run) == [cheap]

    def test_nothing_an_agent_says_of_itself_keeps_a_run_from_resting(self, store: Store) -> None:
        """Half a character in a model's name, or a count beyond all counting, is no reason."""
        run = start_run(store)
        odd = _spent(agent="cut \ud83d", model="\udc00")._replace(tokens_in=1 << 80)

        assert run.append(ledger=[odd], release=True).accepted

        (entry,) = store.ledger(run.run)
        assert (entry.calls, entry.usd) == (odd.calls, odd.usd)

    def test_a_late_reply_is_kept_for_the_new_owner(self, store: Store) -> None:
        """It was paid for; the runner that takes the run over uses it."""
        run, other = start_run(store, "one"), start_run(store, "two")

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
        run = start_run(store)
        before = store.row("run")

        store.keep_late(run.run, "ask#1", 1, "{}")

        assert store.row("run") == before
        assert run.append().accepted
