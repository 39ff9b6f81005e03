"""A run's requests to humans: waiting is an effect whose reply is still missing.

The request is added to the inbox in the same commit that records the wait. If there is no
answer, the handler is suspended and the process may exit. When there is one, it is used once,
in the commit that records it as the effect's reply. An approval of a file that was changed in
the meantime is not used: the request is opened again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signoff.core import events as ev
from signoff.core.digest import digest, text_digest
from signoff.core.effects import EffectId, EffectKind
from signoff.core.errors import UnreadableFile, UnsafePath
from signoff.core.requests import Answer, Edits, ItemState, Request, RequestKind, require_presence
from signoff.core.stop_reason import AnswerPending, ApprovalStale
from signoff.runtime.ports import Clock, FilePort
from signoff.runtime.store_port import InboxItem, NewItem, Store, events_in
from signoff.runtime.suspension import WaitingForAnswer

if TYPE_CHECKING:
    from signoff.runtime.journal import RunJournal

_OPTIONAL = ("failed", "content", "content_digest", "extras", "presence")
"""Parts of an answer that most answers don't have."""

BY_HUMAN = "?person"
"""Suffix of the effect id of a request to a human who answers in an agent's place."""


@dataclass(frozen=True)
class RunInbox:
    """The requests of one run to humans."""

    journal: RunJournal
    clock: Clock
    live: Mapping[str, InboxItem]
    """Open and answered requests as the store had them, by effect."""
    files: ApprovedFiles | None = None
    """Compares files with what their approvers saw; None if runs have no files."""
    presence: bool = False
    """Whether every approval needs the signature of a passkey, as the settings say."""

    def ask(self, identity: EffectId, request: Request) -> Answer:
        """Returns the answer; raises `WaitingForAnswer` while there is none."""
        form = request.to_json()
        return self.answer(identity, form, digest(form))

    def answer(self, identity: EffectId, form: dict[str, object], form_digest: str) -> Answer:
        """Returns the answer to a request in its stored form."""
        record = self.journal.state.effect(identity)
        if record is not None and record.done:
            return Answer(**record.reply)
        item = self.live.get(identity)
        if record is None:
            self.journal.record(ev.EffectStarted(identity, EffectKind.WAIT, form_digest, form))
            deadline = self._open(identity, form)
        elif item is None:
            # Switching agents closes a request but not its wait, so it is opened again.
            deadline = self._open(identity, form)
        elif item.state == ItemState.ANSWERED:
            stale = self._stale(item, form)
            if stale is None:
                return self._use(item)
            self.journal.used.append(item.id)
            deadline = self._open(identity, form, str(stale))
            raise WaitingForAnswer(stale, deadline)
        else:
            deadline = item.deadline
        raise WaitingForAnswer(AnswerPending(), deadline)

    def answered(self, identity: EffectId) -> bool:
        """Tells whether there is an answer to a request that was not used yet."""
        item = self._current_item(identity)
        return item is not None and item.state == ItemState.ANSWERED

    def dismiss(self, identity: EffectId) -> None:
        """Closes a request whose answer is no longer needed."""
        item = self._current_item(identity)
        if item is not None and item.state == ItemState.OPEN:
            self.journal.withdrawn.append(item.id)

    def close(self, scope: str) -> None:
        """Closes the requests of a scope that has ended without asking for their answers.

        Work that was killed after it was done, but before the journal recorded it, is found done
        and asks no one. Its answer counts as used; unused, it would keep waking the run.
        """
        for identity, record in self.journal.state.effects.get(scope, {}).items():
            item = self.live.get(identity)
            if item is None or record.done or record.kind is not EffectKind.WAIT:
                continue
            answered = item.state == ItemState.ANSWERED
            (self.journal.used if answered else self.journal.withdrawn).append(item.id)

    def _current_item(self, identity: EffectId) -> InboxItem | None:
        """Returns this attempt's request; one of an earlier step may have the same id."""
        item = self.live.get(identity)
        if item is None:
            return None
        record = self.journal.state.effect(identity)
        return item if record is not None and not record.done else None

    def blocked(self, scopes: Iterable[str]) -> dict[str, float | None]:
        """Returns the fan-out scopes that can do nothing but wait, with their first deadline.

        Running such an item again would only find the same request open. With a thousand items,
        answering them one by one would take quadratic time.
        """
        blocked: dict[str, float | None] = {}
        for scope in scopes:
            records = self.journal.state.effects.get(scope, {})
            pending = [key for key, record in records.items() if not record.done]
            if not pending or any(records[key].kind is not EffectKind.WAIT for key in pending):
                continue
            if any(key.endswith(BY_HUMAN) for key in pending):
                # The agent may have been switched since to one that needs no human.
                continue
            items = [self.live.get(key) for key in pending]
            if all(item is not None and item.state == ItemState.OPEN for item in items):
                times = [i.deadline for i in items if i is not None and i.deadline is not None]
                blocked[scope] = min(times, default=None)
        return blocked

    def _stale(self, item: InboxItem, form: dict[str, object]) -> ApprovalStale | None:
        """Returns why an approval is no longer valid; None if it is, or if it is none."""
        if self.files is None or json.loads(item.answer or "{}").get("value") is not True:
            return None
        try:
            if self.files.unchanged(item.run, form):
                return None
        except (UnsafePath, UnreadableFile):
            pass  # The file was replaced by a link, a folder or the like.
        return ApprovalStale(str(form["path"]), item.answered_by or "", item.id)

    def _open(self, identity: EffectId, form: dict[str, object], before: str = "") -> float | None:
        """Opens a request; `before` is a note that precedes its prompt."""
        if self.presence:
            form = require_presence(form)
        now = self.clock.now()
        seconds = form.get("deadline_seconds")
        deadline = now + seconds if isinstance(seconds, int | float) else None
        self.journal.opened.append(
            NewItem(
                effect=identity,
                kind=RequestKind(str(form["kind"])),
                prompt=f"{before}\n\n{form['prompt']}" if before else str(form["prompt"]),
                form=self.journal.encode(form),
                # Covers every word; the effect's own digest may cover the material only.
                digest=digest(form),
                step=self.journal.state.step or "",
                opened_at=now,
                deadline=deadline,
            )
        )
        return deadline

    def _use(self, item: InboxItem) -> Answer:
        stored = json.loads(item.answer or "{}")
        reply = {
            "value": stored.get("value"),
            "text": stored.get("text", ""),
            "by": item.answered_by or "",
            "at": item.answered_at or 0.0,
            "parsed": stored.get("parsed"),
        }
        reply |= {name: stored[name] for name in _OPTIONAL if name in stored}
        self.journal.used.append(item.id)
        self.journal.record(ev.EffectFinished(EffectId(item.effect), reply, item=item.id))
        return Answer(**reply)


@dataclass(frozen=True)
class ApprovedFiles:
    """Compares the file of an approval with what its approver was shown.

    This happens twice, when the approval is given and when the run resumes with it, because the
    file may change in between.
    """

    store: Store
    files: FilePort

    def unchanged(self, run: str, form: Mapping[str, Any]) -> bool:
        """Tells whether the file of a request is as it was shown.

        A request has nothing that could change if it has no file, or if its approver may edit the
        file: the text that was approved is recorded then. Raises `UnsafePath` or `UnreadableFile`.
        """
        path = form.get("path")
        if not path or form.get("edits") == Edits.ACCEPT:
            return True
        data = self.files.read(run, path)
        expected = self._expected_digest(run, form)
        return data is not None and hashlib.sha256(data).hexdigest() == expected

    def _expected_digest(self, run: str, form: Mapping[str, Any]) -> str | None:
        """Returns the digest of the text that was shown, or else of what the run wrote."""
        content = (form.get("shown") or {}).get("content")
        if isinstance(content, str):
            return text_digest(content)
        written = None
        files: dict[str, Any] = {}
        rows = self.store.journal(self.store.row(run).id)
        # Digests are stored in the event itself, so the long texts need not be loaded.
        for event in events_in(rows, lambda digest: digest):
            match event:
                case ev.EffectStarted(payload={"path": path}):
                    # What a human edited and approved counts like what the run wrote; what the
                    # run only read does not.
                    files[event.id] = path if event.kind is not EffectKind.READ else None
                case ev.EffectFinished(reply={"digest": found} | {"content_digest": found}):
                    if files.get(event.id) == form["path"]:
                        written = str(found)
        return written
