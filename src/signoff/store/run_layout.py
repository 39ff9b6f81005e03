"""Which files a run directory shows, and under which names.

A notation may name and show things the way its users know them. When two calls or two
steps would write the same file, this module picks different names, for every notation
in the same way. A layout depends only on its arguments, so the same journal always
produces the same files.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from signoff.core.delta import Delta, apply
from signoff.core.events import Event
from signoff.core.outcome import Outcome
from signoff.core.run_state import RunState
from signoff.runtime.paths import fold_name

LONGEST_PART = 60
"""Characters of a step's, agent's or key's name that go into a file name."""


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One agent call, reduced to what its file names depend on."""

    step: str
    phase: str
    agent: str
    iteration: int
    visit: int
    attempt: int
    scope: str
    """The fan-out item it belongs to; empty outside a fan-out."""
    key: str
    """The author's name for it within its scope, its ordinal included."""
    subject: str = ""
    """What it is about, if its key does not say that."""


@dataclass(frozen=True)
class FinishedStep:
    """What a step has produced, for the files that show it."""

    step: str
    phase: str
    iteration: int
    outcome: Outcome
    before: Mapping[str, Any]
    """The run's state when the step was entered."""
    delta: Delta
    choose_path: Callable[[str], str]
    """Returns the path to use for a file of this step: the preferred one if it is free."""

    @property
    def state(self) -> Mapping[str, Any]:
        """The run's state after the step."""
        return apply(self.before, self.delta)


@dataclass(frozen=True)
class FinishedItem:
    """One finished item of a fan-out whose step is still running or waiting."""

    phase: str
    iteration: int
    result: Any
    choose_path: Callable[[str], str]
    """As for a step; the step may show the same file again when it ends."""


@dataclass(frozen=True)
class StepView:
    """What a notation shows of a step in addition to its calls."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    """By path inside the run directory."""
    lines: tuple[Mapping[str, Any], ...] = ()
    """For `thread.jsonl`; each line gets an id and a time in front."""


@dataclass(frozen=True)
class ShownRun:
    """A run as `state.json` shows it."""

    state: RunState
    description: Mapping[str, Any]
    """Its definition, as it was stored when it started."""
    requests: Sequence[Mapping[str, Any]] = ()
    """The forms of its open requests, oldest first."""


@dataclass(frozen=True)
class EndView:
    """What a notation shows of a run that has come to its end."""

    path: str
    """The file with the run's result, inside the run directory."""
    passed: bool
    """Whether the run has the result that it was started for."""
    label: str
    """What that file is, in a word or two."""
    note: str = ""
    """What the user should know about it, on one or more lines."""
    latest: str = ""
    """The file with the latest version, if the result is an earlier one."""
    latest_label: str = ""
    """What that file is, in a few words."""
    latest_reviewed: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    """More for programs."""
    files: Mapping[str, str | None] = field(default_factory=dict)
    """Texts by path, which no step has written: none runs after the end. None removes a file."""
    guide: str = ""
    """The one of these files that describes the others and lists how to continue the run.

    It is a report: unlike the others it is always written again, even over a user's edits. What an
    earlier version worded differently could not be told from an edit, and would stay for good.
    """


class Layout:
    """Shows the runs of one notation; paths are inside the run directory.

    This default layout shows calls in `iterations/N/prompt_STEP_AGENT.txt`, with the
    item's name inside a fan-out. A notation overrides what its users know by other names.
    """

    shows_calls = True
    """Whether each call has files of its own; needless if the workflow writes what users need."""

    nests_run = False
    """Whether `state.json` has the notation's fields first, and the common ones under `run`."""

    def entry(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Returns the `thread.jsonl` entry of a finished step or effect; None leaves it out."""
        return entry

    def step(self, work: FinishedStep) -> StepView:  # noqa: ARG002  # for overriding notations
        """Returns what else to show of a step that has done its work."""
        return _EMPTY_VIEW

    def item(self, item: FinishedItem) -> Mapping[str, bytes]:  # noqa: ARG002  # for overriding notations
        """Returns the files that show one finished item, by path."""
        return {}

    def fields(self, run: ShownRun) -> Mapping[str, Any]:
        """Returns the notation's own fields of `state.json`, shown after the common header.

        A field must not have the name of a common one, unless these are nested.
        """
        return {"state": run.state.state_with_pending}

    def definition(self, description: Mapping[str, Any]) -> Mapping[str, bytes]:  # noqa: ARG002  # for overriding notations
        """Returns files that show the frozen definition; hidden folders are allowed here."""
        return {}

    def end(self, state: RunState, description: Mapping[str, Any]) -> EndView | None:  # noqa: ARG002  # for overriding notations
        """Returns what a run leaves to its user; None if nothing, or while it has not ended."""
        return None

    def news(self, description: Mapping[str, Any]) -> Callable[[Event], Sequence[str]]:  # noqa: ARG002  # for overriding notations
        """Returns what tells the findings and verdicts of each event, for a run's log."""
        return lambda _event: ()

    def warnings(self, state: Mapping[str, Any]) -> Sequence[str]:  # noqa: ARG002  # for overriding notations
        """Returns the warnings that steps have stored in a run's state, for its log."""
        return ()

    def resolution(self, state: RunState) -> Mapping[str, Any]:  # noqa: ARG002  # for overriding notations
        """Returns what the notation says in `resolution.json`: its `reason`, and who decided."""
        return {}

    def prompt(self, call: AgentCall) -> str:
        """Returns the path of a call's prompt."""
        return self._path("prompt", call)

    def reply(self, call: AgentCall) -> str:
        """Returns the path of a call's reply."""
        return self._path("reply", call)

    def _path(self, kind: str, call: AgentCall) -> str:
        parts = [kind, file_name_part(call.step), file_name_part(call.agent)]
        if call.scope:
            parts.append(file_name_part(call.scope))
        return f"iterations/{call.iteration}/{'_'.join(parts)}.txt"


_EMPTY_VIEW = StepView()


class CallFiles(NamedTuple):
    """The paths of one call's prompt and reply."""

    prompt: str
    reply: str


class FileNames:
    """Gives every call and every step files of its own, and the same ones when asked again."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._files: dict[AgentCall, CallFiles] = {}
        self._call_owners: dict[str, AgentCall] = {}
        self._step_owners: dict[str, str] = {}

    def step_path(self, path: str, step: str) -> str:
        """Returns the path for a step's file, with the step's name added if another step has it."""
        suffix = file_name_part(step)
        numbered = (_add_suffix(path, f"{suffix}_{number}") for number in count(2))
        candidates = chain((path, _add_suffix(path, suffix)), numbered)
        owners = self._step_owners
        return next(p for p in candidates if owners.setdefault(fold_name(p), step) == step)

    def call_files(self, call: AgentCall) -> CallFiles:
        """Returns a call's files, which no other call has."""
        if call not in self._files:
            self._files[call] = files = self._choose(call)
            self._call_owners |= dict.fromkeys(map(fold_name, files), call)
        return self._files[call]

    def _choose(self, call: AgentCall) -> CallFiles:
        preferred = CallFiles(self._layout.prompt(call), self._layout.reply(call))
        owner = self._owner(preferred)
        if owner is None:
            return preferred
        candidates = (
            CallFiles(*(_add_suffix(path, suffix) for path in preferred))
            for suffix in _suffixes(call, owner)
        )
        return next(files for files in candidates if self._owner(files) is None)

    def _owner(self, files: CallFiles) -> AgentCall | None:
        owners = (self._call_owners.get(fold_name(path)) for path in files)
        return next(filter(None, owners), None)


def file_name_part(text: str) -> str:
    """Returns a text in a form that is safe inside a file name."""
    plain = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", text))
    return plain[:LONGEST_PART].strip("-.") or "x"


def _suffixes(call: AgentCall, owner: AgentCall) -> Iterator[str]:
    """Yields suffixes: first the one difference to the owner, then all of them, then numbers."""
    candidates = (
        (file_name_part(call.step), call.step != owner.step),
        (file_name_part(call.key), call.key != owner.key),
        (f"time-{call.visit}", call.visit != owner.visit),
        (f"attempt-{call.attempt}", call.attempt != owner.attempt),
    )
    differences = [text for text, differs in candidates if differs]
    yield from differences[:1]
    if len(differences) > 1:
        yield "_".join(differences)
    for number in count(2):
        yield "_".join([*differences, str(number)])


def _add_suffix(path: str, suffix: str) -> str:
    pure = PurePosixPath(path)
    return str(pure.with_name(f"{pure.stem}_{suffix}{pure.suffix}"))
