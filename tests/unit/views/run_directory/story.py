"""A run whose journal is written by hand, so that a test says exactly what happened."""

import json
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from signoff.core import events as ev
from signoff.core.codec import Blobs, encode
from signoff.core.effects import EffectId, EffectKind
from signoff.core.fold import evolve
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Request
from signoff.core.run_state import RunState
from signoff.core.stop_reason import StepDecided
from signoff.runtime.store_port import Commit, InboxItem, NewItem, NewRun, RunId, Store
from signoff.store.run_files import Disk
from signoff.store.sqlite import MemoryStore

BEGAN = 1_700_000_000.0


class Story:
    """Commits events to a store, one second apart."""

    def __init__(
        self,
        store: Store | None = None,
        name: str = "demo",
        *,
        notation: str = "python",
        created_at: float = BEGAN,
        definition: str = "d" * 64,
        steps: Mapping[str, str] | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        self.store: Store = store if store is not None else MemoryStore()
        self.name = name
        self.state = RunState()
        phases = steps or {"draft": "generate", "review": ""}
        described = {
            "name": "essay",
            "notation": notation,
            "steps": [{"id": step, "phase": phase} for step, phase in phases.items()],
            "source": dict(source or {}),
        }
        self._new: NewRun | None = NewRun(
            name=name,
            workflow="essay",
            target="",
            definition=definition,
            description=json.dumps(described),
            created_at=created_at,
            owner="owner",
        )
        self._run = RunId(0)
        self._head = 0
        self._times = count(int(created_at))

    def pass_time(self, seconds: int) -> None:
        """Lets the next event happen that much later."""
        self._times = count(next(self._times) + seconds)
        self.state.updated_at += seconds

    def begin(self, **params: Any) -> "Story":
        return self.commit(ev.RunStarted("essay", "d" * 64, "draft", params))

    def commit(
        self, *events: ev.Event, opened: Sequence[NewItem] = (), used: Sequence[int] = ()
    ) -> "Story":
        blobs: Blobs = {}
        for event in events:
            event.at = float(next(self._times))
            evolve(self.state, event)
        commit = Commit(
            run=self._run,
            fence=1,
            head=self._head,
            events=f"[{','.join(encode(ev.to_json(event), blobs) for event in events)}]",
            status=self.state.status,
            step=self.state.step,
            iteration=self.state.iteration,
            reason=self.state.reason,
            due_at=self.state.due_at,
            at=self.state.updated_at,
            blobs=blobs,
            opened=opened,
            used=used,
            new=self._new,
        )
        (verdict,) = self.store.commit([commit])
        assert verdict.accepted
        self._run = verdict.run or self._run
        self._new = None
        self._head += 1
        return self

    def ask(self, key: str, prompt: str, reply: str, *, agent: str = "claude") -> "Story":
        self.commit(asked(key, prompt, agent=agent))
        return self.commit(
            ev.EffectFinished(EffectId(key), {"text": reply}, usage={"tokens_in": 5})
        )

    def write(self, path: str, text: str) -> "Story":
        key = EffectId(f"write:{path}#1")
        self.commit(ev.EffectStarted(key, EffectKind.WRITE, "x", {"path": path, "text": text}))
        return self.commit(ev.EffectFinished(key, {"path": path, "digest": "x"}))

    def wait(self, request: Request, key: str = "wait#1") -> InboxItem:
        """Opens a request and lets the run wait; returns the request."""
        form = request.to_json()
        started = ev.EffectStarted(EffectId(key), EffectKind.WAIT, "shown", form)
        item = NewItem(
            effect=key,
            kind=request.kind,
            prompt=request.prompt,
            form=json.dumps(form),
            digest=f"digest of {key}",
            step=self.state.step or "",
            opened_at=self.state.updated_at,
            deadline=None if request.deadline is None else self.state.updated_at + 60,
        )
        self.commit(started, ev.RunStopped(Status.WAITING, "waiting"), opened=[item])
        return self.store.items(self.name)[-1]

    def answered(self, item: InboxItem, value: Any) -> "Story":
        """Answers a request and resumes the run."""
        self.answer(item, value)
        reply = {"value": value, "text": "", "by": "ann", "at": 1.0}
        finished = ev.EffectFinished(EffectId(item.effect), reply, item=item.id)
        return self.commit(ev.RunResumed(), finished, used=[item.id])

    def answer(self, item: InboxItem, value: Any, by: str = "ann") -> None:
        answer = json.dumps({"value": value, "text": ""})
        self.store.answer(item.id, answer, by, 1.0, item.digest)

    def step(self, to: str | None, *, iteration: int | None = None, **update: Any) -> "Story":
        delta = {"set": update} if update else {}
        now = self.state.iteration if iteration is None else iteration
        return self.commit(ev.StepFinished(Outcome.OK, "ok", to, delta, now))

    def end(self, status: Status = Status.COMPLETED, reason: str = "") -> "Story":
        why = StepDecided(reason) if reason else None
        return self.commit(ev.RunStopped.because(status, why))


def asked(key: str, prompt: str, *, agent: str = "claude", attempt: int = 1) -> ev.EffectStarted:
    payload = {"agent": agent, "prompt": prompt} if attempt == 1 else None
    return ev.EffectStarted(EffectId(key), EffectKind.ASK, "x", payload, attempt)


def tree(folder: Path) -> dict[str, bytes]:
    """Everything below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


class Killed(BaseException):
    """The process dies here."""


class DyingDisk(Disk):
    """Dies at its n-th operation, in the middle of an append if it is one."""

    def __init__(self, root: Path, dies_at: int) -> None:
        super().__init__(root)
        self.done = 0
        self._dies_at = dies_at

    def put(self, path: Path, data: bytes, *, durable: bool = True) -> None:
        self._step()
        super().put(path, data, durable=durable)

    def append(self, path: Path, data: bytes) -> None:
        try:
            self._step()
        except Killed:
            super().append(path, data[: len(data) // 2])
            raise
        super().append(path, data)

    def remove(self, path: Path) -> None:
        self._step()
        super().remove(path)

    def move(self, old: Path, new: Path) -> None:
        self._step()
        super().move(old, new)

    def point_link(self, link: Path, target: str) -> None:
        self._step()
        super().point_link(link, target)

    def _step(self) -> None:
        self.done += 1
        if self.done == self._dies_at:
            raise Killed
