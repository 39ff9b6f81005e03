"""How the files of an agent's call are named.

A notation may name them as its users know them; what two calls would both write is
told apart here, for every notation alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from signoff.runtime.paths import folded

LONGEST_WORD = 60
"""Characters of a step's, agent's or key's name that go into a file name."""


@dataclass(frozen=True, slots=True)
class Asked:
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


class Layout(Protocol):
    """Names the files of one call, as paths inside the run directory."""

    def prompt(self, asked: Asked) -> str:
        """Returns where the prompt goes."""
        ...

    def reply(self, asked: Asked) -> str:
        """Returns where the reply goes."""
        ...


class PlainLayout:
    """`iterations/N/prompt_STEP_AGENT.txt`, with the item's name inside a fan-out."""

    def prompt(self, asked: Asked) -> str:
        """Returns where the prompt goes."""
        return self._path("prompt", asked)

    def reply(self, asked: Asked) -> str:
        """Returns where the reply goes."""
        return self._path("reply", asked)

    def _path(self, what: str, asked: Asked) -> str:
        words = [what, word(asked.step), word(asked.agent)]
        if asked.scope:
            words.append(word(asked.scope))
        return f"iterations/{asked.iteration}/{'_'.join(words)}.txt"


@dataclass(frozen=True, slots=True)
class AskFiles:
    """Where one call's prompt and reply are."""

    prompt: str
    reply: str


class Names:
    """Gives every call files of its own; the same call gets the same ones again."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._given: dict[Asked, AskFiles] = {}
        self._taken: dict[str, Asked] = {}

    def of(self, asked: Asked) -> AskFiles:
        """Returns a call's files, told apart from all before it."""
        if asked not in self._given:
            self._given[asked] = self._choose(asked)
        return self._given[asked]

    def _choose(self, asked: Asked) -> AskFiles:
        wanted = AskFiles(self._layout.prompt(asked), self._layout.reply(asked))
        holder = self._holder(wanted)
        if holder is None:
            return self._take(wanted, asked)
        for tail in _tails(asked, holder):
            files = AskFiles(_with(wanted.prompt, tail), _with(wanted.reply, tail))
            if self._holder(files) is None:
                return self._take(files, asked)
        raise AssertionError("the tails never end")

    def _holder(self, files: AskFiles) -> Asked | None:
        return self._taken.get(folded(files.prompt)) or self._taken.get(folded(files.reply))

    def _take(self, files: AskFiles, asked: Asked) -> AskFiles:
        self._taken[folded(files.prompt)] = self._taken[folded(files.reply)] = asked
        return files


def word(text: str) -> str:
    """Returns a text as part of a file name."""
    plain = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", text))
    return plain[:LONGEST_WORD].strip("-.") or "x"


def _tails(asked: Asked, holder: Asked) -> Iterator[str]:
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
