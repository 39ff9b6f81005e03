"""Turns a run's events into the content of its files. Reads nothing and writes nothing.

The same events always produce the same updates, however they are grouped and whichever process
computes them. So two processes that write a directory at once write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from signoff.core import events as ev
from signoff.core.amounts import timestamp
from signoff.core.delta import Delta
from signoff.core.digest import text_digest
from signoff.core.effects import EffectKind, scope_of
from signoff.core.outcome import NOT_ENDED, Outcome
from signoff.core.run_state import RunState
from signoff.core.spend import Spend
from signoff.documents.control_characters import escape_controls, json_text
from signoff.store.run_layout import (
    AgentCall,
    CallFiles,
    FileNames,
    FinishedItem,
    FinishedStep,
    Layout,
    ShownRun,
)
from signoff.views.narration import Narrator
from signoff.views.timeline import EffectTry

_SHOWN_KINDS = frozenset(
    {EffectKind.ASK, EffectKind.COMMAND, EffectKind.WRITE, EffectKind.READ, EffectKind.WAIT}
)
"""Effects with the outside world; the other kinds are the engine's own bookkeeping."""

_FIRST_ORDINAL = re.compile(r"#1(?=\[|$)")
"""The ordinal of a key's first effect; most keys have only one, so file names omit it."""


@dataclass(slots=True)
class DirectoryUpdate:
    """What some events add to a run directory."""

    files: dict[str, bytes] = field(default_factory=dict)
    """Views of the journal, by path."""
    writes: dict[str, str | None] = field(default_factory=dict)
    """What the workflow itself wrote, by path; None for a file that is to be removed."""
    thread: list[bytes] = field(default_factory=list)
    log: list[bytes] = field(default_factory=list)
    state_changed: bool = False
    """Whether a step has ended or a human is asked, which those who follow the run want to see."""


class Projector:
    """Follows one run through its journal."""

    def __init__(
        self,
        run: str,
        description: Mapping[str, Any],
        layout: Layout,
        next_steps: Callable[[RunState], Sequence[str]] = lambda _state: (),
    ) -> None:
        """`next_steps` returns what a user can do about a run that has stopped."""
        self.head = 0
        """The number of the last commit applied."""
        self.written: dict[str, set[str]] = {}
        """Digests of every text the workflow ever wrote to a path, or began to."""
        self._last_writes: dict[str, str] = {}
        """The last text the workflow wrote to a path."""
        self.approved: dict[str, str] = {}
        """What humans approved, by path. A later write by the workflow removes its path."""
        self.run = run
        self.layout = layout
        self.description = description
        self._next_steps = next_steps
        self._phases = {step["id"]: step.get("phase", "") for step in description.get("steps", ())}
        self._names = FileNames(layout)
        self._narrator = Narrator(warnings_of=layout.warnings, news_of=layout.news(description))
        self._event_key = ""
        self._last_shown: tuple[str, int, int] | None = None
        """The step, visit and attempt whose work was shown last."""
        self.reports: set[str] = set()
        """Paths whose files are replaced whatever they contain."""
        self._end_files: list[str] = []
        """What the last end of the run has left."""
        self._update = DirectoryUpdate()

    @property
    def state(self) -> RunState:
        """The run after the commits applied so far."""
        return self._narrator.timeline.state

    @property
    def _step(self) -> str:
        return self.state.step or ""

    @property
    def _phase(self) -> str:
        return self._phases.get(self._step) or self._step

    def apply_commit(self, seq: int, events: Sequence[ev.Event], update: DirectoryUpdate) -> None:
        """Applies one commit and adds what it changes in the directory to `update`."""
        self._update = update
        for index, event in enumerate(events):
            self._event_key = f"{self.run}:{seq}:{index}"
            # Handlers need the state before the event, so the narrator, which advances it, is
            # called after them.
            handle = _HANDLERS.get(event.tag)
            if handle is not None:
                handle(self, event)
            update.log += [log_line(line.at, line.text) for line in self._narrator.narrate(event)]
            if isinstance(event, ev.RunStopped):
                self._show_end()
            elif isinstance(event, ev.RunResumed):
                self._remove_end()
        self.head = seq

    def _append_entry(self, event: ev.Event, entry: dict[str, Any]) -> None:
        head = {
            "iteration": self.state.iteration,
            "phase": self._phase,
            "step_name": self._step,
        }
        line = self.layout.entry({**head, **entry})
        if line is not None:
            self._update.thread.append(thread_line(self._event_key, event.at, line))

    def _show_step(self, event: ev.Event, outcome: Outcome, delta: Delta) -> None:
        """Shows what a step has produced, once.

        A step whose result a human has to decide about is shown before the decision, and
        must not be shown a second time when it ends.
        """
        state = self.state
        attempt = (self._step, state.visit, state.attempt)
        if self._last_shown == attempt:
            return
        self._last_shown = attempt
        work = FinishedStep(
            step=self._step,
            phase=self._phase,
            iteration=state.iteration,
            outcome=outcome,
            before=state.state,
            delta=delta,
            choose_path=self._step_path,
        )
        view = self.layout.step(work)
        self._update.files.update(view.files)
        for number, line in enumerate(view.lines):
            self._update.thread.append(thread_line(f"{self._event_key}:{number}", event.at, line))

    def _show_end(self) -> None:
        """Shows what a run leaves to its user.

        These files count as writes of the workflow: a user's edits are kept, except in the guide,
        and what a step writes after the run was resumed replaces them.
        """
        view = self.layout.end(self.state, self.description)
        if view is None:
            return
        if view.guide:
            self.reports.add(view.guide)
        self._end_files = [path for path, text in view.files.items() if text is not None]
        for path, text in view.files.items():
            if text is not None:
                steps = self._next_steps(self.state) if path == view.guide else ()
                self._record_write(path, text + _next_section(steps))
            elif path in self.written:
                self._update.writes[path] = None

    def _remove_end(self) -> None:
        """Removes what the end has left: a run that continues must not look as if it had ended."""
        self._update.writes.update(dict.fromkeys(self._end_files))
        self._end_files = []

    def _item_finished(self, event: ev.ItemFinished) -> None:
        """Shows an item at once: its step may be waiting for a human who has to look at it."""
        item = FinishedItem(self._phase, self.state.iteration, event.result, self._step_path)
        self._update.files.update(self.layout.item(item))

    def _step_path(self, path: str) -> str:
        return self._names.step_path(path, self._step)

    def _step_held_back(self, event: ev.StepWorked | ev.Escalated) -> None:
        if event.outcome is not None:
            self._show_step(event, event.outcome, event.delta)

    def _step_finished(self, event: ev.StepFinished) -> None:
        self._show_step(event, event.outcome, event.delta)
        self._update.state_changed = True
        entry = {
            "kind": "step",
            "times": self.state.visit,
            "attempt": self.state.attempt,
            "seconds": _working_seconds(self.state, event.at),
            "outcome": event.outcome.value,
            "to": event.to,
        }
        self._append_entry(event, entry)

    def _logged(self, event: ev.Logged) -> None:
        item = {"item": event.scope} if event.scope else {}
        self._append_entry(event, {"kind": "log", "text": event.text, **item})

    def _effect_started(self, event: ev.EffectStarted) -> None:
        # Only the first attempt at a call carries its payload; later ones reuse its prompt file.
        shown = event.kind is EffectKind.ASK and self.layout.shows_calls
        if shown and isinstance(event.payload, dict):
            files = self._call_files(event.id, event.payload)
            self._update.files[files.prompt] = _prompt_bytes(event.payload)
        self._update.state_changed |= event.kind is EffectKind.WAIT
        if event.kind is EffectKind.WRITE and isinstance(event.payload, dict):
            # A process that died before it recorded the end may have written the file.
            self._note_text(str(event.payload["path"]), str(event.payload["text"]))

    def _effect_finished(self, event: ev.EffectFinished) -> None:
        effect = self._narrator.timeline.unfinished.get(event.id)
        self._update.state_changed |= effect is not None and effect.kind is EffectKind.WAIT
        if effect is None or effect.kind not in _SHOWN_KINDS:
            return
        seconds = round(max(0.0, event.at - effect.started_at), 3)
        entry: dict[str, Any] = {"kind": effect.kind.value, "effect": event.id, "seconds": seconds}
        entry |= self._request(effect)
        if event.error is not None:
            problem = quote(event.error.get("message", ""))
            entry |= {"outcome": "error", "error": problem, "error_type": event.error.get("type")}
        else:
            entry |= {"outcome": "ok", **self._record_reply(effect, event.reply)}
        if event.usage:
            entry["usage"] = event.usage
        self._append_entry(event, entry)

    def _request(self, effect: EffectTry) -> dict[str, Any]:
        payload = effect.payload
        match effect.kind:
            case EffectKind.ASK:
                call = {"agent": payload.get("agent"), "role": "assistant"}
                if not self.layout.shows_calls:
                    return call
                return {**call, "prompt_file": self._call_files(effect.id, payload).prompt}
            case EffectKind.COMMAND:
                return {"command": payload.get("argv")}
            case EffectKind.WRITE | EffectKind.READ:
                return {"path": payload.get("path")}
            case _:
                return {"role": "human", "question": quote(payload.get("prompt", ""))}

    def _record_reply(self, effect: EffectTry, reply: Any) -> dict[str, Any]:
        """Notes what a successful effect changed and returns its part of the thread's entry."""
        fields = reply if isinstance(reply, dict) else {}
        match effect.kind:
            case EffectKind.ASK if not self.layout.shows_calls:
                return {}
            case EffectKind.ASK:
                file = self._call_files(effect.id, effect.payload).reply
                text = fields.get("text", "") if isinstance(reply, dict) else reply
                self._update.files[file] = _encode(text)
                return {"reply_file": file}
            case EffectKind.COMMAND:
                return {"code": fields.get("code")}
            case EffectKind.WRITE:
                self._record_write(str(effect.payload["path"]), str(effect.payload["text"]))
                return {"digest": fields.get("digest")}
            case EffectKind.READ:
                return {"digest": fields.get("digest")}
            case _:
                self._approve(effect.payload, fields)
                value = fields.get("value")
                answer = quote(value) if isinstance(value, str) else value
                reason = {"text": quote(fields["text"])} if fields.get("text") else {}
                return {"answer": answer, **reason, "by": fields.get("by")}

    def _record_write(self, path: str, text: str) -> None:
        self._last_writes[path] = self._update.writes[path] = text
        self.approved.pop(path, None)
        self._note_text(path, text)

    def _note_text(self, path: str, text: str) -> None:
        self.written.setdefault(path, set()).add(text_digest(text))

    def _approve(self, form: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        path = form.get("path")
        if not path or reply.get("value") is not True:
            return
        content = reply.get("content")
        if content is not None:
            # The approver may have edited the file, and the run continues with what was found, so
            # it counts like a write.
            self._record_write(path, content)
        else:
            content = (form.get("shown") or {}).get("content")
        text = content if isinstance(content, str) else self._last_writes.get(path)
        if text is not None:
            self.approved[path] = text

    def _call_files(self, effect: str, payload: Mapping[str, Any]) -> CallFiles:
        """Returns the paths of a call's prompt and reply; the same call gets the same files."""
        state = self.state
        scope = scope_of(effect)
        key = effect[len(scope) + 1 :] if scope else effect
        call = AgentCall(
            step=self._step,
            phase=self._phase,
            agent=str(payload.get("agent", "")),
            iteration=state.iteration,
            visit=state.visit,
            attempt=state.attempt,
            scope=_FIRST_ORDINAL.sub("", scope),
            key=_FIRST_ORDINAL.sub("", key),
            subject=str((payload.get("about") or {}).get("subject", "")),
        )
        return self._names.call_files(call)


_HANDLERS: dict[str, Callable[[Projector, Any], None]] = {
    ev.ItemFinished.tag: Projector._item_finished,
    ev.StepWorked.tag: Projector._step_held_back,
    ev.Escalated.tag: Projector._step_held_back,
    ev.StepFinished.tag: Projector._step_finished,
    ev.EffectStarted.tag: Projector._effect_started,
    ev.EffectFinished.tag: Projector._effect_finished,
    ev.Logged.tag: Projector._logged,
}


def _next_section(steps: Sequence[str]) -> str:
    entries = [f"- {each[:1].upper()}{each[1:]}" for each in steps]
    return "\n".join(["", "## To continue", "", *entries, ""]) if steps else ""


def _prompt_bytes(payload: Mapping[str, Any]) -> bytes:
    prompt = str(payload.get("prompt", ""))
    system = payload.get("system")
    return _encode(f"[system]\n{system}\n\n[prompt]\n{prompt}" if system else prompt)


def _encode(text: Any) -> bytes:
    # A model may send half of a surrogate pair, which cannot be encoded as UTF-8.
    return str(text).encode("utf-8", "backslashreplace")


def _working_seconds(state: RunState, at: float) -> float:
    """Returns how long the ending visit was worked on, without its waits."""
    since = at if state.active_since is None else state.active_since
    return round(state.visit_spend.seconds + max(0.0, at - since), 3)


# The JSON documents of a run directory, and its two logs line by line.
#
# `thread.jsonl` is for programs: one object per finished step and per finished effect. `live.log`
# is for humans. A line depends on the journal alone, never on the clock or the machine, so two
# processes that write the same log write the same bytes.


VERSION = 1
"""The version of all these formats; it is written into `state.json`."""

LONGEST_QUOTE = 300
"""Characters of an outside text that a log repeats; the journal has all of it."""


class ProjectionState(NamedTuple):
    """Which run a directory shows, and up to which commit of its journal."""

    run: str
    created_at: float
    """Distinguishes the run from an earlier one of the same name."""
    definition: str
    head: int
    """0 while the run is driven: most files are written when it rests."""


def state_document(
    run: ShownRun, projection: ProjectionState, inbox: Sequence[int], layout: Layout, head: int
) -> dict[str, Any]:
    """Returns `state.json`: the common header, the notation's own fields, then the rest.

    A layout that nests the record of the run has its own fields first, and all others under `run`.
    `inbox` has the numbers of the open requests, `head` is that of the last commit it is about.
    """
    state = run.state
    header = {
        "run": projection.run,
        "workflow": state.workflow,
        "status": state.status.value,
        "step": state.step,
        "iteration": state.iteration,
        "awaiting_human": bool(inbox),
        "journal_head": head,
    }
    remaining = _remaining_fields(state, projection, inbox)
    fields = layout.fields(run)
    if layout.nests_run:
        return {**fields, "run": {**header, **remaining}}
    if taken := sorted(fields.keys() & {*header, *remaining}):
        # A mistake of the notation's author, whose tests turn the warning into an error. Users
        # still get the common fields, which programs rely on.
        warnings.warn(
            f"{type(layout).__name__} has fields of its own that every state.json has: "
            f"{', '.join(taken)}; give them other names",
            stacklevel=2,
        )
    return {**header, **fields, **header, **remaining}


def _remaining_fields(
    state: RunState, projection: ProjectionState, inbox: Sequence[int]
) -> dict[str, Any]:
    return {
        "reason": state.reason,
        "due_at": None if state.due_at is None else timestamp(state.due_at),
        "outcome": state.outcome.value if state.outcome else None,
        "inbox": list(inbox),
        "attempt": state.attempt,
        "times": state.visits,
        "spend": _spend(state.spend),
        "limits": state.limits.to_json(),
        "started_at": timestamp(state.started_at),
        "updated_at": timestamp(state.updated_at),
        "params": state.params,
        "projection": {
            "version": VERSION,
            "created_at": projection.created_at,
            "definition": projection.definition,
            "head": projection.head,
        },
    }


def read_projection_state(data: bytes | None) -> ProjectionState | None:
    """Returns what a `state.json` shows; None if it is missing, damaged or implausible."""
    if data is None:
        return None
    try:
        document = json.loads(data)
        if isinstance(document["run"], dict):
            document = document["run"]
        stored = document["projection"]
        projection = ProjectionState(
            document["run"], stored["created_at"], stored["definition"], stored["head"]
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    plausible = type(projection.created_at) in (int, float) and type(projection.head) is int
    return projection if plausible and projection.head >= 0 else None


def resolution_document(state: RunState, layout: Layout) -> dict[str, Any] | None:
    """Returns `resolution.json`, how the run ended; None while it has not."""
    if state.status in NOT_ENDED:
        return None
    rounds = f"{state.iteration} round{'s' if state.iteration != 1 else ''}"
    calls = f"{state.spend.calls} call{'s' if state.spend.calls != 1 else ''}"
    own = layout.resolution(state)
    explanation = {"explanation": state.reason} if own.get("reason") and state.reason else {}
    return {
        "timestamp": timestamp(state.updated_at),
        "reason": state.reason or state.status.value,
        **own,
        "final_turn": state.iteration,
        "summary": f"{state.status.value} at step {state.step!r} after {rounds} and {calls}",
        "status": state.status.value,
        **explanation,
    }


def _spend(spend: Spend) -> dict[str, Any]:
    return {
        "calls": spend.calls,
        "tokens": spend.tokens,
        "usd": spend.usd,
        "seconds": round(spend.seconds, 3),
    }


def thread_line(key: str, at: float, entry: Mapping[str, Any]) -> bytes:
    """Returns one line of `thread.jsonl`; its id is made from `key`, unique in the journal."""
    line_id = hashlib.sha256(key.encode()).hexdigest()[:16]
    text = json_text({"id": line_id, "ts": timestamp(at), **entry})
    return f"{text}\n".encode("utf-8", "backslashreplace")


def log_line(at: float, text: str) -> bytes:
    """Returns one line of `live.log`."""
    return f"{timestamp(at)}  {quote(text)}\n".encode("utf-8", "backslashreplace")


def quote(text: Any) -> str:
    """Returns the start of an outside text on one line, without terminal control sequences."""
    words = " ".join(str(text)[: LONGEST_QUOTE * 2].split())
    line = escape_controls(words)
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}…"
