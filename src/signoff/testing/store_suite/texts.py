"""What a store promises about texts: whatever a model or a person writes comes back."""

from __future__ import annotations

import json

import pytest

from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.errors import StoreDamaged
from signoff.runtime.store_port import Store
from signoff.testing.store_suite.fixture import StoreFixture
from signoff.testing.store_suite.journal_writer import JournalWriter, new_request, start_run

HOSTILE = {
    "nul": "before\x00after",
    "astral": "emoji \U0001f9d1\u200d\U0001f680 and \U0001d54f",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c",
    "combining": "e\u0301 \ufeff \ufffd \uffff",
    "controls": "\x01\x1b[31m\r\n\t\x7f\x85\u2028",
    "sql": "'; DROP TABLE runs; -- \" ? :x @y $z %s {0}",
    "blank": "",
    "long": "ü" * 1_000_000,
}
HALVES = ["cut \ud83d off", "\udc80 alone", "\udfff"]
"""Half of a surrogate pair, as a cut-off emoji or a badly decoded byte leaves behind."""


class TextTests(StoreFixture):
    """Texts."""

    @pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
    def test_every_text_comes_back_as_it_was(self, store: Store, text: str) -> None:
        """Prompts, replies and artifacts are other people's words; changing them is losing them."""
        run = start_run(store)
        digest = text_digest(text)
        # The journal and checkpoints are JSON, whatever the words in them are.
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

    @pytest.mark.parametrize("text", HALVES)
    def test_half_a_character_stops_nobody(self, store: Store, text: str) -> None:
        """Shown to people it may be replaced, but a run must not end because of it."""
        run = start_run(store)

        result = run.append(status=Status.FAILED, reason=text, opened=[new_request(prompt=text)])
        (item,) = store.items()
        store.answer(item.id, "{}", text, 5.0, "shown")
        store.ask_cancel(run.run, text)

        assert result.accepted
        for shown in (store.row("run").reason, item.prompt, store.row("run").cancel):
            assert shown is not None
            assert len(shown) == len(text)

    def test_hostile_names_are_only_names(self, store: Store) -> None:
        """A run's name is typed by a person."""
        name = "x'; DELETE FROM runs; --"

        start_run(store, name)

        assert store.row(name).name == name
        assert [row.name for row in store.rows()] == [name]

    def test_a_text_is_kept_once_by_its_digest(self, store: Store) -> None:
        """An artifact that every step mentions is stored once, and twice the same is no error."""
        digest = text_digest("artifact")
        one, two = JournalWriter(store, "one"), JournalWriter(store, "two")

        one.begin(blobs={digest: "artifact"})
        one.append(blobs={digest: "artifact"})
        two.begin(blobs={digest: "artifact", text_digest("other"): "other"})

        assert store.blob(digest) == "artifact"
        assert store.blob(text_digest("other")) == "other"

    def test_a_text_that_is_missing_is_said_to_be(self, store: Store) -> None:
        """An empty text in its place would be a silent loss."""
        with pytest.raises(StoreDamaged):
            store.blob(text_digest("never stored"))
