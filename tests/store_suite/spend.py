"""Tests of the ledger, of summaries, and of replies that arrive too late."""

from __future__ import annotations

from signoff.core.spend import LedgerEntry
from signoff.runtime.store_port import Store
from tests.store_suite.journal_writer import StoreFixture, start_run


def _entry(step: str = "draft", agent: str = "claude", model: str = "m") -> LedgerEntry:
    return LedgerEntry(step, agent, model, 1, 10, 20, 0.25, 0, 1)


class SpendTests(StoreFixture):
    """The spend ledger, and late replies."""

    def test_the_latest_entry_per_step_agent_and_model_counts(self, store: Store) -> None:
        """A run that stops, is resumed and stops again must not be billed twice."""
        run = start_run(store)
        more = _entry()._replace(calls=3, usd=0.75)

        run.append(ledger=[_entry(), _entry("judge")])
        run.append()
        run.append(ledger=[_entry("judge"), more, _entry(agent="codex"), _entry(model="")])

        expected = [_entry(model=""), more, _entry(agent="codex"), _entry("judge")]
        assert store.ledger(run.run) == expected

    def test_cached_tokens_are_stored(self, store: Store) -> None:
        """They show whether a prompt cache works."""
        run = start_run(store)
        cached = _entry()._replace(tokens_cached=7, unknown_cached=1)

        run.append(ledger=[cached])

        assert store.ledger(run.run) == [cached]

    def test_a_hostile_ledger_entry_does_not_stop_a_run(self, store: Store) -> None:
        """Half a surrogate pair in a model's name, or a huge token count, must not end a run."""
        run = start_run(store)
        odd = _entry(agent="cut \ud83d", model="\udc00")._replace(tokens_in=1 << 80)

        assert run.append(ledger=[odd], release=True).accepted

        (entry,) = store.ledger(run.run)
        assert (entry.calls, entry.usd) == (odd.calls, odd.usd)

    def test_spend_is_added_up_by_workflow_agent_and_model(self, store: Store) -> None:
        """What is unknown stays unknown in the sum, and old runs can be left out."""
        one, two = start_run(store, "one"), start_run(store, "two")
        one.append(ledger=[LedgerEntry("draft", "claude", "m", 1, 10, 5, 0.5)], at=100.0)
        entries = [
            LedgerEntry("draft", "claude", "m", 2, 20, 5, 1.0),
            LedgerEntry("review", "claude", "m", 1, 1, 1, 0.0, unknown_usd=1),
        ]
        two.append(ledger=entries, at=200.0)

        (total,) = store.ledger_totals(0.0)
        (recent,) = store.ledger_totals(150.0)

        assert (total.agent, total.model, total.runs, total.calls) == ("claude", "m", 2, 4)
        assert (total.tokens_in, total.tokens_out, total.usd) == (31, 11, 1.5)
        assert total.unknown_usd == 1
        assert (recent.runs, recent.usd) == (1, 1.0)
        assert store.ledger_totals(300.0) == []

    def test_a_summary_is_returned_until_its_run_changes(self, store: Store) -> None:
        """Metrics must be those of the journal, however old the stored summary is."""
        one, two = start_run(store, "one"), start_run(store, "two")

        store.keep_summaries(1, [(one.run, one.head, "{}"), (two.run, two.head, '{"a": 1}')])
        assert store.summaries(1) == {one.run: "{}", two.run: '{"a": 1}'}
        assert store.summaries(2) == {}

        one.append()
        assert store.summaries(1) == {two.run: '{"a": 1}'}
        store.keep_summaries(1, [(one.run, one.head, "[]")])
        assert store.summaries(1) == {one.run: "[]", two.run: '{"a": 1}'}

    def test_a_late_reply_is_stored_for_the_new_owner(self, store: Store) -> None:
        """It was paid for, and the runner that takes over the run uses it."""
        run, other = start_run(store, "one"), start_run(store, "two")

        store.keep_late(run.run, "ask#1", 1, '{"reply":"a"}')
        store.keep_late(run.run, "ask#1", 2, '{"reply":"b"}')
        store.keep_late(other.run, "ask#1", 1, '{"reply":"c"}')

        expected = {("ask#1", 1): '{"reply":"a"}', ("ask#1", 2): '{"reply":"b"}'}
        assert store.late(run.run) == expected
        assert store.late(other.run) == {("ask#1", 1): '{"reply":"c"}'}
