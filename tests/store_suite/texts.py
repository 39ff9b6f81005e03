"""Tests that every text of a model or a human is stored unchanged."""

from __future__ import annotations

import json

import pytest

from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.runtime.store_port import Store
from tests.store_suite.journal_writer import JournalWriter, StoreFixture, new_request, start_run

HOSTILE = {
    "astral": "emoji \U0001f9d1\u200d\U0001f680 and \U0001d54f",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c",
    "combining": "e\u0301 \ufeff \ufffd \uffff",
    "controls": "\x01\x1b[31m\r\n\t\x7f\x85\u2028",
    "sql": "'; DROP TABLE runs; -- \" ? :x @y $z %s {0}",
    "blank": "",
    "long": "ü" * 1_000_000,
}
REFUSED = ["cut \ud83d off", "\udc80 alone", "\udfff", "before\x00after"]
"""Half of a surrogate pair, as left by a truncated emoji or a badly decoded byte, and NUL."""


class TextTests(StoreFixture):
    """Texts with unusual characters, and long ones."""

    @pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
    def test_every_text_is_returned_unchanged(self, store: Store, text: str) -> None:
        """Prompts, replies and artifacts must not change, whatever characters they contain."""
        run = start_run(store)
        digest = text_digest(text)
        # The journal and checkpoints are always JSON, whatever text they contain.
        events = json.dumps([text], ensure_ascii=False)

        run.append(
            events=events,
            status=Status.FAILED,
            reason=text,
            blobs={digest: text},
            opened=[new_request(prompt=text, form=text)],
            checkpoint=events,
        )
        (item,) = store.items()
        store.answer(item.id, text, text, 5.0, "shown")
        store.keep_late(run.run, "ask#1", 1, text)
        store.ask_cancel(run.run, text)

        item = store.item(item.id)
        assert run.events()[-1] == events
        assert store.blob(digest) == text
        assert (item.prompt, item.form, item.answer, item.answered_by) == (text,) * 4
        assert store.load("run").checkpoint == events
        assert store.late(run.run) == {("ask#1", 1): text}
        assert (store.row("run").reason, store.row("run").cancel) == (text, text)

    @pytest.mark.parametrize("text", REFUSED)
    def test_a_character_that_databases_refuse_is_not_an_error(
        self, store: Store, text: str
    ) -> None:
        """It may be replaced where it is displayed, but it must not end a run."""
        run = start_run(store)

        result = run.append(status=Status.FAILED, reason=text, opened=[new_request(prompt=text)])
        (item,) = store.items()
        store.answer(item.id, "{}", text, 5.0, "shown")
        store.ask_cancel(run.run, text)

        assert result.accepted
        for shown in (store.row("run").reason, item.prompt, store.row("run").cancel):
            assert shown is not None
            assert len(shown) == len(text)

    def test_a_hostile_run_name_is_harmless(self, store: Store) -> None:
        """A run's name comes from a user."""
        name = "x'; DELETE FROM runs; --"

        start_run(store, name)

        assert store.row(name).name == name
        assert [row.name for row in store.rows()] == [name]

    def test_a_text_is_stored_once_by_its_digest(self, store: Store) -> None:
        """An artifact that every step refers to is stored once; storing it again is no error."""
        digest = text_digest("artifact")
        one, two = JournalWriter(store, "one"), JournalWriter(store, "two")

        one.begin(blobs={digest: "artifact"})
        one.append(blobs={digest: "artifact"})
        two.begin(blobs={digest: "artifact", text_digest("other"): "other"})

        assert store.blob(digest) == "artifact"
        assert store.blob(text_digest("other")) == "other"
