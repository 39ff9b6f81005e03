"""A store that keeps runs in a SQLite file, and every answer of a human in a text file next to it.

A store of your own implements `signoff.runtime.store_port.Store` from scratch. This one builds on
the SQLite store, to show what a package has to provide: a `StoreKind`, and a test with the
`StoreSuite` of signoff's own tests.
"""

from __future__ import annotations

import json
from pathlib import Path

from signoff.runtime.store_port import InboxItem, Store, StoreKind
from signoff.store.sqlite import SqliteStore


class AuditedStore(SqliteStore):
    """The SQLite store, with a line in `answers.jsonl` for each answer."""

    def reopen(self) -> Store:
        """Opens the same file again, for another thread."""
        return AuditedStore(self.path)

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Stores an answer; one that was refused is not written down."""
        item = super().answer(number, answer, by, at, digest)
        line = {"at": at, "by": by, "run": item.run, "request": item.prompt, "digest": digest}
        with self.path.with_name("answers.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return item


def open_url(url: str) -> Store:
    """Opens `audited:///path`; the path is relative to the current folder."""
    return AuditedStore(Path(url.removeprefix("audited:///")))


KIND = StoreKind(open=open_url)
