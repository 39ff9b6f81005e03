"""Turns a run's events into what its files say. Reads nothing and writes nothing.

The same events give the same pages, however they are grouped and whoever asks: this is
what lets a directory be continued after a crash, by two processes at once, or rebuilt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signoff.core import events as ev
from signoff.core.delta import Delta
from signoff.core.digest import text_digest
from signoff.core.effects import EffectKind, scope_of
from signoff.core.outcome import Outcome, Status
from signoff.core.run_state import RunState
from signoff.runtime.narration import Narrator
from signoff.runtime.timeline import Running
from signoff.store.rundir.documents import log_line, quote, thread_line
from signoff.store.rundir.layout import AgentCall, AskFiles, Item, Layout, Made, Names

_SHOWN = frozenset({EffectKind.ASK, EffectKind.COMMAND, EffectKind.WRITE, EffectKind.WAIT})
"""Kinds that went outside; the others are the engine's own notes."""

_FIRST = re.compile(r"#1(?=\[|$)")
"""Marks the first effect of a key, which need not be told apart from any other."""


@dataclass(slots=True)
class Page:
    """What some events add to a run directory."""

    files: dict[str, bytes] = field(default_factory=dict)
    """Views of the journal, by path."""
    writes: dict[str, str] = field(default_factory=dict)
    """What the workflow itself wrote, by path."""
    approved: dict[str, str] = field(default_factory=dict)
    """What people have approved, by path, of a run that has completed."""
    thread: list[bytes] = field(default_factory=list)
    log: list[bytes] = field(default_factory=list)


class Projector:
    """Follows one run through its journal."""

    def __init__(self, run: str, phases: Mapping[str, str], layout: Layout) -> None:
        self.head = 0
        """How many commits were seen."""
        self.written: dict[str, set[str]] = {}
        """Digests of every text the workflow ever wrote to a path."""
        self._last: dict[str, str] = {}
        """The last text the workflow wrote to a path."""
        self._approved: dict[str, str] = {}
        """What people have approved of it; a text written later is the workflow's own word."""
        self.run = run
        self.layout = layout
        self._phases = phases
        self._names = Names(layout)
        self._narrator = Narrator()
        self._place = ""
        self._shown: tuple[str, int, int] | None = None
        """The step, visit and attempt whose work was shown last."""
        self._page = Page()

    @property
    def state(self) -> RunState:
        """The run after the commits seen so far."""
        return self._narrator.timeline.state

    @property
    def asks_people(self) -> bool:
        """Whether some effect of the current attempt waits for a human."""
        unfinished = self._narrator.timeline.unfinished
        return any(effect.kind is EffectKind.WAIT for effect in unfinished.values())

    def feed(self, seq: int, events: Sequence[ev.Event]) -> Page:
        """Takes one commit and returns what it adds."""
        self._page = page = Page()
        for index, event in enumerate(events):
            self._place = f"{self.run}:{seq}:{index}"
            # Files show what an event leads from as well as to, so the fold comes after.
            tell = _TELL.get(event.tag)
            if tell is not None:
                tell(self, event)
            page.log += [log_line(said.at, said.text) for said in self._narrator.tell(event)]
        self.head = seq
        return page

    def _note(self, event: ev.Event, entry: dict[str, Any]) -> None:
        step = self.state.step or ""
        head = {
            "iteration": self.state.iteration,
            "phase": self._phases.get(step) or step,
            "step_name": step,
        }
        said = self.layout.entry({**head, **entry})
        if said is not None:
            self._page.thread.append(thread_line(self._place, event.at, said))

    def _show(self, event: ev.Event, outcome: Outcome, delta: Delta) -> None:
        """Shows what a step has produced, once, though a person may first decide about it."""
        state = self.state
        step = state.step or ""
        if self._shown == (step, state.visit, state.attempt):
            return
        self._shown = (step, state.visit, state.attempt)
        made = Made(
            step=step,
            phase=self._phases.get(step) or step,
            iteration=state.iteration,
            outcome=outcome,
            before=state.state,
            delta=delta,
            place=lambda path: self._names.place(path, step),
        )
        shown = self.layout.shown(made)
        self._page.files.update(shown.files)
        for number, line in enumerate(shown.lines):
            self._page.thread.append(thread_line(f"{self._place}:{number}", event.at, line))

    def _item_finished(self, event: ev.ItemFinished) -> None:
        """Shows an item at once: its step may wait for a person who has to look at it."""
        step = self.state.step or ""
        item = Item(
            phase=self._phases.get(step) or step,
            iteration=self.state.iteration,
            result=event.result,
            place=lambda path: self._names.place(path, step),
        )
        self._page.files.update(self.layout.item(item))

    def _held_back(self, event: ev.StepWorked | ev.Escalated) -> None:
        if event.outcome is not None:
            self._show(event, event.outcome, event.delta)

    def _step_finished(self, event: ev.StepFinished) -> None:
        state = self.state
        took = _worked(state, event.at)
        self._show(event, event.outcome, event.delta)
        self._note(
            event,
            {
                "kind": "step",
                "visit": state.visit,
                "attempt": state.attempt,
                "seconds": took,
                "outcome": event.outcome.value,
                "to": event.to,
            },
        )

    def _effect_started(self, event: ev.EffectStarted) -> None:
        # Later attempts at a call do not repeat what is asked, and its file is there already.
        if event.kind is EffectKind.ASK and isinstance(event.payload, dict):
            files = self._ask_files(event.id, event.payload)
            self._page.files[files.prompt] = _prompt(event.payload)

    def _effect_finished(self, event: ev.EffectFinished) -> None:
        effect = self._narrator.timeline.unfinished.get(event.id)
        if effect is None or effect.kind not in _SHOWN:
            return
        took = round(max(0.0, event.at - effect.started_at), 3)
        reply = event.reply if isinstance(event.reply, dict) else {}
        entry: dict[str, Any] = {"kind": effect.kind.value, "effect": event.id, "seconds": took}
        entry |= self._request(effect)
        if event.error is not None:
            problem = quote(event.error.get("message", ""))
            entry |= {"outcome": "error", "error": problem, "error_type": event.error.get("type")}
        else:
            entry |= {"outcome": "ok", **self._result(effect, reply)}
            self._keep(effect, event.reply)
        if event.usage:
            entry["usage"] = event.usage
        self._note(event, entry)

    def _request(self, effect: Running) -> dict[str, Any]:
        payload = effect.payload
        match effect.kind:
            case EffectKind.ASK:
                file = self._ask_files(effect.id, payload).prompt
                return {"agent": payload.get("agent"), "role": "assistant", "prompt_file": file}
            case EffectKind.COMMAND:
                return {"command": payload.get("argv")}
            case EffectKind.WRITE:
                return {"path": payload.get("path")}
            case _:
                return {"role": "human", "question": quote(payload.get("prompt", ""))}

    def _result(self, effect: Running, reply: Mapping[str, Any]) -> dict[str, Any]:
        match effect.kind:
            case EffectKind.ASK:
                return {"reply_file": self._ask_files(effect.id, effect.payload).reply}
            case EffectKind.COMMAND:
                return {"code": reply.get("code")}
            case EffectKind.WRITE:
                return {"digest": reply.get("digest")}
            case _:
                value = reply.get("value")
                answer = quote(value) if isinstance(value, str) else value
                why = {"text": quote(reply["text"])} if reply.get("text") else {}
                return {"answer": answer, **why, "by": reply.get("by")}

    def _keep(self, effect: Running, reply: Any) -> None:
        if effect.kind is EffectKind.ASK:
            text = reply.get("text", "") if isinstance(reply, dict) else reply
            files = self._ask_files(effect.id, effect.payload)
            self._page.files[files.reply] = _bytes(text)
        if effect.kind is EffectKind.WAIT:
            self._approve(effect.payload, reply)
        if effect.kind is EffectKind.WRITE:
            path, text = str(effect.payload["path"]), str(effect.payload["text"])
            self._last[path] = text
            self._approved.pop(path, None)
            self.written.setdefault(path, set()).add(text_digest(text))
            self._page.writes[path] = text

    def _approve(self, form: Mapping[str, Any], reply: Any) -> None:
        path = form.get("path")
        if not path or not isinstance(reply, dict) or reply.get("value") is not True:
            return
        content = (form.get("shown") or {}).get("content")
        text = content if isinstance(content, str) else self._last.get(path)
        if text is not None:
            self._approved[path] = text

    def _stopped(self, event: ev.RunStopped) -> None:
        if event.status is Status.COMPLETED:
            self._page.approved.update(self._approved)

    def _ask_files(self, effect: str, payload: Mapping[str, Any]) -> AskFiles:
        """Returns where a call's prompt and reply go; the same call gets the same files."""
        state = self.state
        step = state.step or ""
        scope = scope_of(effect)
        key = effect[len(scope) + 1 :] if scope else effect
        call = AgentCall(
            step=step,
            phase=self._phases.get(step) or step,
            agent=str(payload.get("agent", "")),
            iteration=state.iteration,
            visit=state.visit,
            attempt=state.attempt,
            scope=_FIRST.sub("", scope),
            key=_FIRST.sub("", key),
        )
        return self._names.of(call)


_TELL: dict[str, Callable[[Projector, Any], None]] = {
    ev.ItemFinished.tag: Projector._item_finished,
    ev.StepWorked.tag: Projector._held_back,
    ev.Escalated.tag: Projector._held_back,
    ev.StepFinished.tag: Projector._step_finished,
    ev.EffectStarted.tag: Projector._effect_started,
    ev.EffectFinished.tag: Projector._effect_finished,
    ev.RunStopped.tag: Projector._stopped,
}


def _prompt(payload: Mapping[str, Any]) -> bytes:
    prompt = str(payload.get("prompt", ""))
    system = payload.get("system")
    return _bytes(f"[system]\n{system}\n\n[prompt]\n{prompt}" if system else prompt)


def _bytes(text: Any) -> bytes:
    # A model may send half of a pair of surrogates, which no file can hold as text.
    return str(text).encode("utf-8", "backslashreplace")


def _worked(state: RunState, at: float) -> float:
    """Returns how long the visit now ending was worked on, waits left out."""
    since = at if state.active_since is None else state.active_since
    return round(state.visit_spend.seconds + max(0.0, at - since), 3)
