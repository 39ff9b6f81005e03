"""What a run directory shows, and under which names.

A notation may name and show things as its users know them; what two calls, or two steps,
would both write is told apart here, for every notation alike. A layout depends on what it
is given alone, so the same journal always gives the same files.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from signoff.core.delta import Delta, apply
from signoff.core.outcome import Outcome, Status
from signoff.runtime.paths import folded

LONGEST_WORD = 60
"""Characters of a step's, agent's or key's name that go into a file name."""


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One call of an agent, as far as names go."""

    step: str
    phase: str
    agent: str
    iteration: int
    visit: int
    attempt: int
    scope: str
    """The fan-out item it belongs to; empty at the top."""
    key: str
    """The author's name for it within its scope, its ordinal included."""


@dataclass(frozen=True)
class Made:
    """What a step has produced, as far as the run directory goes."""

    step: str
    phase: str
    iteration: int
    outcome: Outcome
    before: Mapping[str, Any]
    """The run's state when the step was entered."""
    delta: Delta
    place: Callable[[str], str]
    """Returns where a file of this step goes: where it should, unless another step's is there."""

    @property
    def state(self) -> Mapping[str, Any]:
        """The run's state as the step leaves it."""
        return apply(self.before, self.delta)


@dataclass(frozen=True)
class Item:
    """One finished item of a fan-out, while its step is still at work, or waits."""

    phase: str
    iteration: int
    result: Any
    place: Callable[[str], str]
    """As for a step; the file may be one the step shows again when it is done."""


@dataclass(frozen=True)
class Shown:
    """What a notation shows of a step besides its calls."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    """By path inside the run directory."""
    lines: tuple[Mapping[str, Any], ...] = ()
    """For `thread.jsonl`; an id and the time are put before each."""


class Layout:
    """Shows the runs of one notation; paths are inside the run directory.

    As it is, it shows calls in `iterations/N/prompt_STEP_AGENT.txt`, with the item's name
    inside a fan-out. A notation overrides what its users know under other names.
    """

    def entry(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Returns what `thread.jsonl` says of a finished step or effect; None leaves it out."""
        return entry

    def shown(self, made: Made) -> Shown:  # noqa: ARG002  # for notations that know more of a step
        """Returns what else is shown of a step that has done its work."""
        return _NOTHING

    def item(self, item: Item) -> Mapping[str, bytes]:  # noqa: ARG002  # nor of its items
        """Returns files that show one finished item, by path."""
        return {}

    def fields(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the notation's own fields of `state.json`, after the head that all share."""
        return {"state": state}

    def definition(self, description: Mapping[str, Any]) -> Mapping[str, bytes]:  # noqa: ARG002  # shown as it is
        """Returns files that show the frozen definition; hidden folders are allowed here."""
        return {}

    def reason(self, status: Status) -> str:  # noqa: ARG002  # its own word will do
        """Returns the notation's word for an end, for `resolution.json`; empty if it has none."""
        return ""

    def prompt(self, asked: AgentCall) -> str:
        """Returns where a call's prompt goes."""
        return self._path("prompt", asked)

    def reply(self, asked: AgentCall) -> str:
        """Returns where a call's reply goes."""
        return self._path("reply", asked)

    def _path(self, what: str, asked: AgentCall) -> str:
        words = [what, word(asked.step), word(asked.agent)]
        if asked.scope:
            words.append(word(asked.scope))
        return f"iterations/{asked.iteration}/{'_'.join(words)}.txt"


_NOTHING = Shown()


@dataclass(frozen=True, slots=True)
class AskFiles:
    """Where one call's prompt and reply are."""

    prompt: str
    reply: str


class Names:
    """Gives every call and every step files of their own; the same one gets the same again."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._given: dict[AgentCall, AskFiles] = {}
        self._taken: dict[str, AgentCall] = {}
        self._placed: dict[str, str] = {}

    def place(self, path: str, step: str) -> str:
        """Returns where a step's file goes; the step's name is added where another's stands."""
        wanted = path
        number = 1
        while self._placed.setdefault(folded(wanted), step) != step:
            wanted = _with(path, word(step) if number == 1 else f"{word(step)}_{number}")
            number += 1
        return wanted

    def of(self, asked: AgentCall) -> AskFiles:
        """Returns a call's files, told apart from all before it."""
        if asked not in self._given:
            self._given[asked] = self._choose(asked)
        return self._given[asked]

    def _choose(self, asked: AgentCall) -> AskFiles:
        wanted = AskFiles(self._layout.prompt(asked), self._layout.reply(asked))
        holder = self._holder(wanted)
        if holder is None:
            return self._take(wanted, asked)
        for tail in _tails(asked, holder):
            files = AskFiles(_with(wanted.prompt, tail), _with(wanted.reply, tail))
            if self._holder(files) is None:
                return self._take(files, asked)
        raise AssertionError("the tails never end")

    def _holder(self, files: AskFiles) -> AgentCall | None:
        return self._taken.get(folded(files.prompt)) or self._taken.get(folded(files.reply))

    def _take(self, files: AskFiles, asked: AgentCall) -> AskFiles:
        self._taken[folded(files.prompt)] = self._taken[folded(files.reply)] = asked
        return files


def word(text: str) -> str:
    """Returns a text as part of a file name."""
    plain = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", text))
    return plain[:LONGEST_WORD].strip("-.") or "x"


def _tails(asked: AgentCall, holder: AgentCall) -> Iterator[str]:
    """Yields what can be added to a name: first the one thing that differs, then everything."""
    differences = [
        text
        for text, differs in (
            (word(asked.step), asked.step != holder.step),
            (word(asked.key), asked.key != holder.key),
            (f"visit-{asked.visit}", asked.visit != holder.visit),
            (f"attempt-{asked.attempt}", asked.attempt != holder.attempt),
        )
        if differs
    ]
    yield from differences[:1]
    if len(differences) > 1:
        yield "_".join(differences)
    number = 2
    while True:
        yield "_".join([*differences, str(number)])
        number += 1


def _with(path: str, tail: str) -> str:
    pure = PurePosixPath(path)
    return str(pure.with_name(f"{pure.stem}_{tail}{pure.suffix}"))
