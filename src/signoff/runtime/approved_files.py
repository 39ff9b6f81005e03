"""The file an approval is about: whether it is still what was shown.

Looked at twice: when a person approves, and when the run goes on with that approval. What
happened to the file in between was seen by nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.digest import text_digest
from signoff.runtime.ports import FilePort
from signoff.runtime.store_port import Store


class ApprovedFiles:
    """Compares the files of runs with what people were shown."""

    def __init__(self, store: Store, files: FilePort) -> None:
        self._store = store
        self._files = files

    def hold(self, run: str, form: Mapping[str, Any]) -> bool:
        """Tells whether the file of a request is as it was shown; raises `UnsafePath`.

        A request without a file has nothing that could have changed.
        """
        path = form.get("path")
        if not path:
            return True
        found = self._files.read(run, path)
        return found is not None and hashlib.sha256(found).hexdigest() == self._shown(run, form)

    def _shown(self, run: str, form: Mapping[str, Any]) -> str | None:
        """Returns the digest the file must have: of the text shown, else of what the run wrote."""
        content = (form.get("shown") or {}).get("content")
        if isinstance(content, str):
            return text_digest(content)
        written = None
        for row in self._store.journal(self._store.row(run).id):
            # Digests are never kept apart, so the texts that are need not be read.
            for event in map(ev.from_json, decode(row.events, lambda digest: digest)):
                if not isinstance(event, ev.EffectFinished) or not isinstance(event.reply, dict):
                    continue
                if event.reply.get("path") == form["path"] and "digest" in event.reply:
                    written = event.reply["digest"]
        return written
