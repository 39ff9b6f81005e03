"""Waiting for people: an effect whose reply is missing.

The request goes into the inbox with the same commit that records the wait. If no answer
is there, the handler is suspended; when one is, it is used once, in the commit that
records it. An approval of a file that was changed meanwhile is not used: the request is
made once more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.digest import digest, text_digest
from signoff.core.effects import EffectId, EffectKind
from signoff.core.requests import Answer, ItemState, Request, RequestKind
from signoff.core.stop_reason import AnswerPending, ApprovalStale
from signoff.errors import UnsafePath
from signoff.runtime.journal import RunJournal
from signoff.runtime.ports import Clock, FilePort
from signoff.runtime.store_port import InboxItem, NewItem, Store
from signoff.runtime.suspension import WaitingForAnswer

BY_HUMAN = "?person"
"""Ends the name of a request that is made in place of an agent's call."""


class RunInbox:
    """A run's requests to people."""

    def __init__(
        self,
        journal: RunJournal,
        clock: Clock,
        live: Mapping[str, InboxItem],
        files: ApprovedFiles | None = None,
    ) -> None:
        """`files` are those that approvals may be about; None where runs have none."""
        self._journal = journal
        self._clock = clock
        self._live = live
        """Open and answered requests as the store had them, by effect."""
        self._files = files

    def ask(self, identity: EffectId, request: Request) -> Answer:
        """Returns the answer; raises `WaitingForAnswer` while there is none."""
        form = request.to_json()
        return self.answer(identity, form, digest(form))

    def answer(self, identity: EffectId, form: dict[str, object], shown: str) -> Answer:
        """Returns the answer to a request in its stored form."""
        record = self._journal.state.effect(identity)
        if record is not None and record.done:
            return Answer(**record.reply)
        item = self._live.get(identity)
        if record is None:
            self._journal.record(ev.EffectStarted(identity, EffectKind.WAIT, shown, form))
            deadline = self._open(identity, form)
        elif item is None:
            # A wait without its request, as a switch of agents leaves behind: asked once more.
            deadline = self._open(identity, form)
        elif item.state == ItemState.ANSWERED:
            stale = self._stale(item, form)
            if stale is None:
                return self._use(item)
            self._journal.use_item(item.id)
            deadline = self._open(identity, form, str(stale))
            raise WaitingForAnswer(stale, deadline)
        else:
            deadline = item.deadline
        raise WaitingForAnswer(AnswerPending(), deadline)

    def answered(self, identity: EffectId) -> bool:
        """Tells whether a person has answered a request that is still to be used."""
        item = self._asked(identity)
        return item is not None and item.state == ItemState.ANSWERED

    def dismiss(self, identity: EffectId) -> None:
        """Closes a request that nobody needs answered any more."""
        item = self._asked(identity)
        if item is not None and item.state == ItemState.OPEN:
            self._journal.withdraw_item(item.id)

    def _asked(self, identity: EffectId) -> InboxItem | None:
        """Returns the request of this attempt; an earlier step's may have had the same name."""
        item = self._live.get(identity)
        if item is None:
            return None
        record = self._journal.state.effect(identity)
        return item if record is not None and not record.done else None

    def blocked(self, scopes: Iterable[str]) -> dict[str, float | None]:
        """Returns the fan-out scopes that can do nothing but wait, with their first deadline.

        Running such an item again would only find the same request open; with a thousand of
        them, answering one after the other would be quadratic.
        """
        found: dict[str, float | None] = {}
        for scope in scopes:
            known = self._journal.state.effects.get(scope, {})
            pending = [key for key, record in known.items() if not record.done]
            if not pending or any(known[key].kind is not EffectKind.WAIT for key in pending):
                continue
            if any(key.endswith(BY_HUMAN) for key in pending):
                # Another agent may stand in by now, and need no person.
                continue
            items = [self._live.get(key) for key in pending]
            if all(item is not None and item.state == ItemState.OPEN for item in items):
                times = [i.deadline for i in items if i is not None and i.deadline is not None]
                found[scope] = min(times, default=None)
        return found

    def _stale(self, item: InboxItem, form: dict[str, object]) -> ApprovalStale | None:
        """Returns why an approval no longer counts; None when it does, or is none."""
        if self._files is None or json.loads(item.answer or "{}").get("value") is not True:
            return None
        try:
            if self._files.hold(item.run, form):
                return None
        except UnsafePath:
            # Somebody put a link where the file was.
            pass
        return ApprovalStale(str(form["path"]), item.answered_by or "", item.id)

    def _open(self, identity: EffectId, form: dict[str, object], before: str = "") -> float | None:
        """Opens a request; `before` is what the person has to know first."""
        now = self._clock.now()
        seconds = form.get("deadline_seconds")
        deadline = now + seconds if isinstance(seconds, int | float) else None
        self._journal.open_item(
            NewItem(
                effect=identity,
                kind=RequestKind(str(form["kind"])),
                prompt=f"{before}\n\n{form['prompt']}" if before else str(form["prompt"]),
                form=self._journal.kept(form),
                # What was shown, word for word; the effect may be known by its material alone.
                digest=digest(form),
                step=self._journal.state.step or "",
                opened_at=now,
                deadline=deadline,
            )
        )
        return deadline

    def _use(self, item: InboxItem) -> Answer:
        given = json.loads(item.answer or "{}")
        reply = {
            "value": given.get("value"),
            "text": given.get("text", ""),
            "by": item.answered_by or "",
            "at": item.answered_at or 0.0,
            "parsed": given.get("parsed"),
        }
        if given.get("failed"):
            reply["failed"] = True
        self._journal.use_item(item.id)
        self._journal.record(ev.EffectFinished(EffectId(item.effect), reply, item=item.id))
        return Answer(**reply)


class ApprovedFiles:
    """Compares the file an approval is about with what its approver was shown.

    It is compared twice: when the approval is given, and when the run resumes with it.
    Nobody has seen what happened to the file in between.
    """

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
