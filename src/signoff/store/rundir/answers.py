"""Answers that humans give by file, matched with the open requests.

This module reads the files; its caller records the answers in the inbox and then
archives the files. The file's token is recorded with each answer, so after a crash
between these two, the file cannot answer a later question of the same name.
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
    is_early,
    read_answer_file,
)
from signoff.store.rundir.questions import PLACEHOLDER, decode_form

_EXAMPLE = '{"answers": [{"question_id": "...", "answer": "..."}]}'
_YES = frozenset({"yes", "y", "true", "approve", "approved"})
_NO = frozenset({"no", "n", "false", "reject", "rejected"})


@dataclass(frozen=True)
class FileAnswer:
    """One answer read from a file."""

    number: int
    """The inbox item it answers."""
    value: Any
    text: str
    """The reason given with a choice or an approval."""
    digest: str
    """The digest of what was shown: from the file (required to approve) or the open request."""
    file: AnswerFile

    @property
    def by(self) -> str:
        """Who answered, for the inbox; includes the token that makes the file single-use."""
        return f"{self.file.path.name} {self.file.token}"


@dataclass(frozen=True)
class FileAnswers:
    """The content of a run's answer files."""

    answers: tuple[FileAnswer, ...] = ()
    warnings: tuple[str, ...] = ()
    """Files and entries that could not be used, and why."""
    recorded_files: tuple[AnswerFile, ...] = ()
    """Files whose answers are already recorded; they only have to be archived."""


def read_answers(
    folder: Path, items: Sequence[InboxItem], blob: Callable[[str], str]
) -> FileAnswers:
    """Returns the answers in `folder` to a run's open requests."""
    reader = _AnswerReader(items, blob)
    for path in find_answer_files(folder):
        reader.read(path)
    return FileAnswers(
        tuple(reader.answers.values()), tuple(reader.warnings), tuple(reader.recorded_files)
    )


@dataclass(frozen=True)
class _AnswerEntry:
    """What a file contains about one question."""

    name: str
    answer: Any
    text: str = ""
    digest: str = ""

    @property
    def empty(self) -> bool:
        """Whether nothing was filled in."""
        answer = self.answer.strip() if isinstance(self.answer, str) else self.answer
        return answer is None or answer in ("", PLACEHOLDER)


class _AnswerReader:
    """Reads files one after the other; the first answer to a request counts."""

    def __init__(self, items: Sequence[InboxItem], blob: Callable[[str], str]) -> None:
        self.answers: dict[int, FileAnswer] = {}
        self.warnings: list[str] = []
        self.recorded_files: list[AnswerFile] = []
        self._open = {item.id: item for item in items if item.state == ItemState.OPEN}
        self._names = {
            item.id: str(decode_form(item, blob).get("question_id") or "")
            for item in self._open.values()
        }
        self._answered_by = "\n".join(item.answered_by or "" for item in items)

    def read(self, path: Path) -> None:
        """Reads one file, collecting its answers and warnings."""
        content = read_answer_file(path)
        if content is None:
            self._warn(path, "is not a regular, readable file, or it is too large")
            return
        file, data = content
        if file.token in self._answered_by:
            self.recorded_files.append(file)
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
            self._accept(file, item, entry)

    def _warn(self, path: Path, problem: str) -> None:
        self.warnings.append(f"{path.parent.name}/{path.name}: {problem}")

    def _entries(self, file: AnswerFile, text: str) -> Iterator[tuple[InboxItem, _AnswerEntry]]:
        if file.number is not None:
            item = self._open.get(file.number)
            if item is None:
                self._warn(file.path, self._unknown_request(str(file.number)))
            else:
                yield item, _parse_response(item, text)
            return
        for entry in self._parse_entries(file, text):
            item = self._find_item(file, entry)
            if item is not None:
                yield item, entry

    def _parse_entries(self, file: AnswerFile, text: str) -> list[_AnswerEntry]:
        try:
            entries = list(_parse_document(json.loads(text)))
        except (json.JSONDecodeError, RecursionError) as error:
            self._warn(file.path, f"is not JSON: no answers yet ({error})")
            return []
        except ValueError:
            self._warn(file.path, "has a number with too many digits; put it in quotes")
            return []
        if not entries:
            self._warn(file.path, f"contains no answers; the format is {_EXAMPLE}")
        return entries

    def _find_item(self, file: AnswerFile, entry: _AnswerEntry) -> InboxItem | None:
        """Returns the request an entry answers, or None after a warning."""
        if entry.empty:
            self._warn(file.path, f"{entry.name!r} has no answer yet")
            return None
        number = entry.name.removeprefix("#")
        by_number = [item for item in self._open.values() if number == str(item.id)]
        if by_number:
            return by_number[0]
        matches = [item for item in self._open.values() if self._names[item.id] == entry.name]
        problem = self._problem(entry, matches)
        if problem:
            self._warn(file.path, problem)
            return None
        return matches[0]

    def _problem(self, entry: _AnswerEntry, matches: Sequence[InboxItem]) -> str:
        if not matches:
            return self._unknown_request(entry.name)
        if len(matches) > 1:
            numbers = ", ".join(str(item.id) for item in matches)
            return f"{entry.name!r} matches several requests; use a number: {numbers}"
        return ""

    def _unknown_request(self, name: str) -> str:
        names = [self._names[number] or str(number) for number in self._open]
        open_requests = f"open requests: {', '.join(names[:12])}" if names else "no request is open"
        return f"no open request is called {name!r}; {open_requests}"

    def _accept(self, file: AnswerFile, item: InboxItem, entry: _AnswerEntry) -> None:
        if item.id in self.answers:
            first = self.answers[item.id].file.path.name
            self._warn(
                file.path,
                f"request {item.id} is already answered in {first}",
            )
            return
        value = _parse_value(item.kind, entry.answer)
        problem = _rejection(file, item, blind=value is True and not entry.digest)
        if problem:
            self._warn(file.path, problem)
            return
        digest = entry.digest or item.digest
        self.answers[item.id] = FileAnswer(item.id, value, entry.text, digest, file)


def _rejection(file: AnswerFile, item: InboxItem, *, blind: bool) -> str:
    """Returns why an entry cannot answer a request, or ''; `blind` approves without a digest."""
    if is_early(file, item.opened_at):
        return f"was written before request {item.id} was opened; answer it again"
    if blind:
        return f'to approve request {item.id}, copy its "digest" from questions.json as well'
    return ""


def _parse_document(document: Any) -> Iterator[_AnswerEntry]:
    """Reads the documented format, and a plain mapping from id to answer."""
    if not isinstance(document, dict):
        return
    answers = document.get("answers", document)
    if isinstance(answers, dict):
        for name, answer in answers.items():
            yield _AnswerEntry(str(name), answer)
        return
    for entry in answers if isinstance(answers, list) else ():
        if isinstance(entry, dict) and "question_id" in entry:
            text, digest = str(entry.get("text") or ""), str(entry.get("digest") or "")
            yield _AnswerEntry(str(entry["question_id"]), entry.get("answer"), text, digest)


def _parse_response(item: InboxItem, text: str) -> _AnswerEntry:
    """Reads a response file: all of it, or a decision on its first line and a reason below.

    An approval is followed by the digest of what it approves: `approve 1a2b3c4d`.
    """
    if item.kind not in (RequestKind.APPROVAL, RequestKind.CHOICE):
        return _AnswerEntry(str(item.id), text)
    decision, _, reason = text.strip().partition("\n")
    digest = ""
    if item.kind == RequestKind.APPROVAL:
        decision, _, digest = decision.strip().partition(" ")
    return _AnswerEntry(str(item.id), decision.strip(), reason.strip(), digest.strip())


def _parse_value(kind: str, answer: Any) -> Any:
    if kind != RequestKind.APPROVAL:
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if isinstance(answer, bool):
        return answer
    decision = str(answer).strip().casefold()
    if decision in _YES:
        return True
    return False if decision in _NO else str(answer)
