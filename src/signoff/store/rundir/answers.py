"""Answers that people give by file, matched with what is asked.

A file is read, its answers are recorded in the inbox by whoever asked for them here,
and then it is archived. The file's token is recorded with each answer, so a crash
before the archiving does not let it answer a later question of the same name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.core.requests import ItemState, RequestKind
from signoff.runtime.store_port import InboxItem
from signoff.store.rundir.answer_files import (
    AnswerFile,
    find_answer_files,
    read_answer_file,
    was_early,
)
from signoff.store.rundir.questions import PLACEHOLDER, form_of

_FORM = '{"answers": [{"question_id": "...", "answer": "..."}]}'
_YES = frozenset({"yes", "y", "true", "approve", "approved"})
_NO = frozenset({"no", "n", "false", "reject", "rejected"})


@dataclass(frozen=True)
class FileAnswer:
    """One answer found in a file."""

    number: int
    """The inbox item it answers."""
    value: Any
    text: str
    """What was written beside a choice or an approval."""
    digest: str
    """Of what the person was shown: from the file, which an approval needs, or the open request."""
    file: AnswerFile

    @property
    def by(self) -> str:
        """Who answered, for the inbox; holds the token that makes the file single-use."""
        return f"{self.file.path.name} {self.file.token}"


@dataclass(frozen=True)
class FileAnswers:
    """What the answer files of a run hold."""

    answers: tuple[FileAnswer, ...] = ()
    warnings: tuple[str, ...] = ()
    """What a person should know: files and entries that could not be used, and why."""
    spent: tuple[AnswerFile, ...] = ()
    """Files whose answers were recorded before; they only wait to be archived."""


def read_answers(
    folder: Path, items: Sequence[InboxItem], blob: Callable[[str], str]
) -> FileAnswers:
    """Returns the answers in `folder` to those of a run's requests that are open."""
    reader = _AnswerReader(items, blob)
    for path in find_answer_files(folder):
        reader.read(path)
    return FileAnswers(tuple(reader.found.values()), tuple(reader.warnings), tuple(reader.spent))


@dataclass(frozen=True)
class _AnswerEntry:
    """What a file says about one question."""

    name: str
    answer: Any
    text: str = ""
    digest: str = ""

    @property
    def empty(self) -> bool:
        """Whether nothing was filled in."""
        said = self.answer.strip() if isinstance(self.answer, str) else self.answer
        return said is None or said in ("", PLACEHOLDER)


class _AnswerReader:
    """Reads one file after the other; the first answer to a request counts."""

    def __init__(self, items: Sequence[InboxItem], blob: Callable[[str], str]) -> None:
        self.found: dict[int, FileAnswer] = {}
        self.warnings: list[str] = []
        self.spent: list[AnswerFile] = []
        self._open = {item.id: item for item in items if item.state == ItemState.OPEN}
        self._names = {
            item.id: str(form_of(item, blob).get("question_id") or "")
            for item in self._open.values()
        }
        self._used = "\n".join(item.answered_by or "" for item in items)

    def read(self, path: Path) -> None:
        """Takes what one file says."""
        read = read_answer_file(path)
        if read is None:
            self._warn(path, "is not a plain, readable file of a sensible size")
            return
        file, data = read
        if file.token in self._used:
            self.spent.append(file)
            return
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            self._warn(path, "is not UTF-8 text")
            return
        if not text.strip():
            self._warn(path, "is empty: no answer yet")
            return
        for item, entry in self._entries(file, text):
            self._take(file, item, entry)

    def _warn(self, path: Path, problem: str) -> None:
        self.warnings.append(f"{path.parent.name}/{path.name}: {problem}")

    def _entries(self, file: AnswerFile, text: str) -> Iterator[tuple[InboxItem, _AnswerEntry]]:
        if file.number is not None:
            item = self._open.get(file.number)
            if item is None:
                self._warn(file.path, self._not_open(str(file.number)))
            else:
                yield item, _response(item, text)
            return
        for entry in self._listed(file, text):
            item = self._item(file, entry)
            if item is not None:
                yield item, entry

    def _listed(self, file: AnswerFile, text: str) -> list[_AnswerEntry]:
        try:
            entries = list(_listed_in(json.loads(text)))
        except (json.JSONDecodeError, RecursionError) as error:
            self._warn(file.path, f"is not JSON: no answers yet ({error})")
            return []
        except ValueError:
            self._warn(file.path, "has a number with too many digits; put it in quotes")
            return []
        if not entries:
            self._warn(file.path, f"holds no answers; its form is {_FORM}")
        return entries

    def _item(self, file: AnswerFile, entry: _AnswerEntry) -> InboxItem | None:
        """Returns the request an entry answers, or None after a warning."""
        if entry.empty:
            self._warn(file.path, f"{entry.name!r} has no answer yet")
            return None
        number = entry.name.removeprefix("#")
        by_number = [item for item in self._open.values() if number == str(item.id)]
        if by_number:
            return by_number[0]
        named = [item for item in self._open.values() if self._names[item.id] == entry.name]
        problem = self._problem(entry, named)
        if problem:
            self._warn(file.path, problem)
            return None
        return named[0]

    def _problem(self, entry: _AnswerEntry, named: Sequence[InboxItem]) -> str:
        if not named:
            return self._not_open(entry.name)
        if len(named) > 1:
            numbers = ", ".join(str(item.id) for item in named)
            return f"{entry.name!r} stands for several requests; use a number: {numbers}"
        return ""

    def _not_open(self, name: str) -> str:
        known = [self._names[number] or str(number) for number in self._open]
        tail = f"open are: {', '.join(known[:12])}" if known else "nothing is asked at the moment"
        return f"no open request is called {name!r}; {tail}"

    def _take(self, file: AnswerFile, item: InboxItem, entry: _AnswerEntry) -> None:
        if item.id in self.found:
            first = self.found[item.id].file.path.name
            self._warn(file.path, f"request {item.id} is answered in {first}, which counts")
            return
        value = _value(item.kind, entry.answer)
        problem = _cannot_count(file, item, blind=value is True and not entry.digest)
        if problem:
            self._warn(file.path, problem)
            return
        digest = entry.digest or item.digest
        self.found[item.id] = FileAnswer(item.id, value, entry.text, digest, file)


def _cannot_count(file: AnswerFile, item: InboxItem, *, blind: bool) -> str:
    """Returns why an entry is no answer to a request; `blind` approves without a digest."""
    if was_early(file, item.opened_at):
        return f"was written before request {item.id} was opened; answer it again"
    if blind:
        return f'to approve request {item.id}, copy its "digest" from questions.json as well'
    return ""


def _listed_in(document: Any) -> Iterator[_AnswerEntry]:
    """Reads the documented form, and a plain mapping from id to answer."""
    if not isinstance(document, dict):
        return
    listed = document.get("answers", document)
    if isinstance(listed, dict):
        for name, answer in listed.items():
            yield _AnswerEntry(str(name), answer)
        return
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and "question_id" in entry:
            text, digest = str(entry.get("text") or ""), str(entry.get("digest") or "")
            yield _AnswerEntry(str(entry["question_id"]), entry.get("answer"), text, digest)


def _response(item: InboxItem, text: str) -> _AnswerEntry:
    """Reads a file beside a prompt: all of it, or a decision on its first line and a reason.

    An approval is followed by the digest of what it approves: `approve 1a2b3c4d`.
    """
    if item.kind not in (RequestKind.APPROVAL, RequestKind.CHOICE):
        return _AnswerEntry(str(item.id), text)
    decision, _, reason = text.strip().partition("\n")
    digest = ""
    if item.kind == RequestKind.APPROVAL:
        decision, _, digest = decision.strip().partition(" ")
    return _AnswerEntry(str(item.id), decision.strip(), reason.strip(), digest.strip())


def _value(kind: str, answer: Any) -> Any:
    if kind != RequestKind.APPROVAL:
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if isinstance(answer, bool):
        return answer
    said = str(answer).strip().casefold()
    if said in _YES:
        return True
    return False if said in _NO else str(answer)
