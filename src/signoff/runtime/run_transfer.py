"""A run as one document, in which it is moved from one store to another."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from signoff.core.errors import StoreDamaged
from signoff.core.outcome import Status
from signoff.core.requests import ItemState, RequestKind
from signoff.core.spend import LedgerEntry
from signoff.runtime.store_port import InboxItem, JournalRow, RunId, RunRow, Store

_REFERENCE = re.compile(r'"\$blob":\s*"([0-9a-f]{64})"')
_LOCAL = ("id", "owner", "cancel", "fence")
"""What belongs to a run's place in one store and not to the run."""


class RunCopy(NamedTuple):
    """Everything a store has about one run, except what can be computed again."""

    row: RunRow
    description: str
    journal: list[JournalRow]
    blobs: dict[str, str]
    items: list[InboxItem]
    ledger: list[LedgerEntry]
    late: dict[tuple[str, int], str]

    @property
    def requests(self) -> list[tuple[int, str]]:
        """The states of its requests, to notice when one is answered."""
        return [(item.id, item.state.value) for item in self.items]

    def to_text(self) -> str:
        """Returns the copy as one text, which is the same whichever store it was read from."""
        row = {k: v for k, v in self.row._asdict().items() if k not in _LOCAL}
        items = [item[1:] for item in self.items]
        late = sorted((*key, outcome) for key, outcome in self.late.items())
        blobs = dict(sorted(self.blobs.items()))
        parts = [row, self.description, self.journal, blobs, items, self.ledger, late]
        return json.dumps({"version": 1, "run": parts}, sort_keys=True, separators=(",", ":"))


def read_copy(store: Store, row: RunRow) -> RunCopy:
    """Reads a run; no one else drives it, so only its requests can change meanwhile."""
    journal, items = store.journal(row.id), store.items(row.name, state=tuple(ItemState))
    late = store.late(row.id)
    texts = [*(each.events for each in journal), *(item.form for item in items)]
    texts += [item.answer for item in items if item.answer is not None]
    blobs = {digest: store.blob(digest) for digest in references([*texts, *late.values()])}
    description = store.description(row.id)
    return RunCopy(row, description, journal, blobs, items, store.ledger(row.id), late)


def parse_copy(text: str) -> RunCopy:
    """Reads the text of a copy; ids are 0, because its new store has not given any yet."""
    try:
        row, description, journal, blobs, items, ledger, late = json.loads(text)["run"]
        needs = None if row["needs"] is None else tuple(row["needs"])
        local = {"id": RunId(0), "owner": None, "cancel": None, "fence": 1}
        values = {**row, **local, "status": Status(row["status"]), "needs": needs}
        return RunCopy(
            RunRow(**values),
            description,
            [JournalRow(*each) for each in journal],
            blobs,
            [_item(each) for each in items],
            [LedgerEntry(*each) for each in ledger],
            {(effect, attempt): outcome for effect, attempt, outcome in late},
        )
    except (ValueError, TypeError, KeyError) as error:
        raise StoreDamaged(f"a staged run is not readable: {error}") from error


def text_id(text: str) -> str:
    """Returns the digest that two stores compare."""
    return hashlib.sha256(text.encode()).hexdigest()


def references(texts: Iterable[str]) -> list[str]:
    """Returns the digests of separately stored texts that these refer to, in order."""
    found = (_REFERENCE.findall(text) for text in texts if "$blob" in text)
    return sorted({digest for digests in found for digest in digests})


def _item(values: Sequence[Any]) -> InboxItem:
    item = InboxItem(0, *values)
    return item._replace(kind=RequestKind(item.kind), state=ItemState(item.state))
