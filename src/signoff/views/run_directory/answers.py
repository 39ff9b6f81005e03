"""Answers that humans give by file in `hitl/`: found, read once, archived.

This module reads the files and matches them with the open requests; its caller records
the answers in the inbox and then archives the files. The file's token is recorded with
each answer, so after a crash between these two, the file cannot answer a later question
of the same name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

from signoff.core.amounts import timestamp
from signoff.core.codec import decode
from signoff.core.requests import AnswerForm, ItemState, options_of
from signoff.runtime.store_port import InboxItem
from signoff.store.run_files import Disk, json_bytes, read_regular_file

# The files in `hitl/` that show a run's open requests to humans.


QUESTIONS = "questions.json"
_QUESTION_FILE = re.compile(r"questions\.json|[0-9]+-prompt\.md")
PLACEHOLDER = "<your answer>"
"""The answer in the example; copied unchanged, it counts as no answer."""


def question_files(
    items: Sequence[InboxItem], forms: Mapping[int, Mapping[str, Any]], iteration: int
) -> dict[str, bytes]:
    """Returns the files that show open requests, by name; empty without requests."""
    if not items:
        return {}
    files = {QUESTIONS: json_bytes(_document(items, forms, iteration))}
    for item in items:
        if item.kind.answer_form is AnswerForm.WORK:
            files[prompt_name(item.id)] = _prompt_bytes(item, forms[item.id])
    return files


def find_question_files(hitl: Path) -> set[str]:
    """Returns the names of the question files in a run's `hitl/`."""
    names = (path.name for path in hitl.iterdir()) if hitl.is_dir() else ()
    return {name for name in names if _QUESTION_FILE.fullmatch(name)}


def decode_form(item: InboxItem, blob: Callable[[str], str]) -> dict[str, Any]:
    """Returns the complete request of an inbox item."""
    form = decode(item.form, blob)
    return form if isinstance(form, dict) else {}


def prompt_name(number: int) -> str:
    """Returns the name of the file with a request's prompt."""
    return f"{number}-prompt.md"


def response_name(number: int) -> str:
    """Returns the name of the file in which a request may be answered."""
    return f"{number}-response.md"


def _document(
    items: Sequence[InboxItem], forms: Mapping[int, Mapping[str, Any]], iteration: int
) -> dict[str, Any]:
    by_step: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        by_step.setdefault(item.step, []).append(_question(item, forms[item.id]))
    answers = [_example(question) for questions in by_step.values() for question in questions]
    return {
        "timestamp": timestamp(max(item.opened_at for item in items)),
        "turn": iteration,
        "questions": [{"agent": step, "questions": qs} for step, qs in by_step.items()],
        "answer_format": {"answers": answers},
    }


def _question(item: InboxItem, form: Mapping[str, Any]) -> dict[str, Any]:
    name = str(form.get("question_id") or "")
    # An approval counts only for exactly what was shown, and only the number identifies that.
    is_decision = item.kind.answer_form is AnswerForm.DECISION
    use_name = name and not is_decision
    question: dict[str, Any] = {
        "id": name if use_name else str(item.id),
        "question": item.prompt,
        "priority": "critical" if is_decision else "high",
        "required": item.deadline is None,
        "number": item.id,
        "kind": item.kind,
        "digest": item.digest,
    }
    title = (form.get("about") or {}).get("title")
    if title:
        question["title"] = title
    options = options_of(form)
    if options:
        question["options"] = [str(option["label"]) for option in options]
        described = {str(o["label"]): o["description"] for o in options if o.get("description")}
        question |= {"descriptions": described} if described else {}
    if form.get("questions"):
        question["questions"] = form["questions"]
    if item.deadline is not None:
        question["deadline"] = timestamp(item.deadline)
        question["default"] = form.get("default")
    if item.kind.answer_form is AnswerForm.WORK:
        question["prompt_file"] = prompt_name(item.id)
        question["response_file"] = response_name(item.id)
    if form.get("shown"):
        question["shown"] = form["shown"]
    if form.get("edits"):
        question |= {"path": form["path"], "edits": form["edits"]}
    return question


def _example(question: Mapping[str, Any]) -> dict[str, Any]:
    parts = question.get("questions", ())
    answer = {each["header"]: PLACEHOLDER for each in parts} if parts else PLACEHOLDER
    example = {"question_id": question["id"], "answer": answer}
    if question["kind"].answer_form is AnswerForm.DECISION:
        # An approval by file counts only with the digest of what it approves.
        example["digest"] = question["digest"]
    return example


def _prompt_bytes(item: InboxItem, form: Mapping[str, Any]) -> bytes:
    text = item.prompt
    if form.get("schema"):
        schema = json.dumps(form["schema"], ensure_ascii=False, indent=2)
        text = f"{text}\n\nAnswer with JSON that fits this schema:\n\n```json\n{schema}\n```\n"
    return text.encode("utf-8", "backslashreplace")


CLOCK_STEP = 0.02
"""Seconds by which a file's timestamp may lag behind the system clock: it moves in steps."""

_ANSWERS = "answers.json"
_RESPONSE = re.compile(r"([0-9]{1,15})-response\.md")
_EXAMPLE = '{"answers": [{"question_id": "...", "answer": "..."}]}'
_DECISIONS = {
    **dict.fromkeys(("yes", "y", "true", "approve", "approved"), True),
    **dict.fromkeys(("no", "n", "false", "reject", "rejected"), False),
}


@dataclass(frozen=True)
class AnswerFile:
    """A file with answers, at the moment it was read."""

    path: Path
    data: bytes
    token: str
    """Distinguishes it from any other file, and from itself after a change."""
    changed_at: float
    """When it was last written, in seconds since 1970; its answers are at least that old."""
    placed_at: float
    """When it arrived in its present form. Unlike `changed_at`, no program can set it."""

    @property
    def number(self) -> str | None:
        """The request it answers, if it is a response file next to a prompt."""
        match = _RESPONSE.fullmatch(self.path.name)
        return str(int(match[1])) if match else None

    def is_early(self, opened_at: float) -> bool:
        """Whether it was there before a request was opened, so it cannot be its answer."""
        return self.placed_at + CLOCK_STEP < opened_at


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


def read_answers(hitl: Path, items: Sequence[InboxItem], blob: Callable[[str], str]) -> FileAnswers:
    """Returns the answers in `hitl` to a run's open requests."""
    reader = _AnswerReader(items, blob)
    for path in _find_answer_files(hitl):
        reader.read(path)
    return FileAnswers(
        tuple(reader.answers.values()), tuple(reader.warnings), tuple(reader.recorded_files)
    )


def rename_early_files(disk: Disk, hitl: Path, items: Sequence[InboxItem]) -> list[str]:
    """Renames answer files that are older than every open request; returns a warning for each.

    Otherwise an agent could leave an answer to a request that no human has seen yet.
    """
    opened_at = min((item.opened_at for item in items if item.state is ItemState.OPEN), default=0.0)
    warnings = []
    for path in _find_answer_files(hitl):
        file = _read_answer_file(path)
        if file is not None and file.is_early(opened_at):
            new = path.with_name(f"{path.stem}_{file.token}.early{path.suffix}")
            disk.move(path, new)
            warnings.append(
                f"{hitl.name}/{path.name} is older than the request it would answer, "
                f"so it does not count; it was renamed to {hitl.name}/{new.name}"
            )
    return warnings


def archive_file(disk: Disk, file: AnswerFile) -> Path | None:
    """Renames a used file so that it is never read again; None if it changed since."""
    if _read_answer_file(file.path) != file:
        return None
    separator = "_" if file.number is None else "."
    archived = file.path.with_name(
        f"{file.path.stem}{separator}{file.token}.processed{file.path.suffix}"
    )
    disk.move(file.path, archived)
    return archived


def _find_answer_files(hitl: Path) -> list[Path]:
    """Returns the files that may contain answers, `answers.json` first."""
    if hitl.is_symlink() or not hitl.is_dir():
        return []
    names = {path.name for path in hitl.iterdir()}
    responses = sorted(filter(_RESPONSE.fullmatch, names), key=lambda n: int(n.split("-")[0]))
    return [hitl / name for name in (_ANSWERS, *responses) if name in names]


def _read_answer_file(path: Path) -> AnswerFile | None:
    """Reads a file; None if it is not a regular, readable file."""
    data = read_regular_file(path)
    try:
        status = path.lstat()
    except OSError:
        return None
    if data is None:
        return None
    changed = status.st_mtime_ns
    # The token includes the time of change because a human may give the same answer to a later
    # question, and that file must not count as already used.
    token = hashlib.sha256(b"%d\n%s" % (changed, data)).hexdigest()[:16]
    return AnswerFile(path, data, token, changed / 1e9, status.st_ctime)


class _UnusableAnswerError(Exception):
    """Why a file or one of its entries cannot be used."""


@dataclass(frozen=True)
class _AnswerEntry:
    """What a file contains about one question."""

    name: str
    answer: Any
    text: str = ""
    digest: str = ""


class _AnswerReader:
    """Reads files one after the other; the first answer to a request counts."""

    def __init__(self, items: Sequence[InboxItem], blob: Callable[[str], str]) -> None:
        self.answers: dict[int, FileAnswer] = {}
        self.warnings: list[str] = []
        self.recorded_files: list[AnswerFile] = []
        self._open = [item for item in items if item.state == ItemState.OPEN]
        forms = {item.id: decode_form(item, blob) for item in self._open}
        self._names = {number: str(f.get("question_id") or "") for number, f in forms.items()}
        self._headers = {
            number: [str(each["header"]) for each in form.get("questions", ())]
            for number, form in forms.items()
        }
        self._answered_by = "\n".join(item.answered_by or "" for item in items)

    def read(self, path: Path) -> None:
        """Reads one file, collecting its answers and warnings."""
        file = _read_answer_file(path)
        if file is None:
            self._warn(path, "is not a regular, readable file, or it is too large")
        elif file.token in self._answered_by:
            self.recorded_files.append(file)
        else:
            try:
                entries = _parse_file(file)
            except _UnusableAnswerError as problem:
                self._warn(path, problem)
                return
            for entry in self._by_request(entries):
                try:
                    self._accept(file, entry)
                except _UnusableAnswerError as problem:
                    self._warn(path, problem)

    def _by_request(self, entries: Sequence[_AnswerEntry]) -> list[_AnswerEntry]:
        """Returns the entries, with those for the questions of one request put together."""
        found: list[_AnswerEntry] = []
        together: dict[int, dict[str, Any]] = {}
        names = {*map(str, self._names), *self._names.values()}
        for entry in entries:
            asked = [number for number, each in self._headers.items() if entry.name in each]
            if len(asked) == 1 and entry.name not in names:
                together.setdefault(asked[0], {})[entry.name] = entry.answer
            else:
                found.append(entry)
        return found + [_AnswerEntry(str(number), each) for number, each in together.items()]

    def _warn(self, path: Path, problem: object) -> None:
        self.warnings.append(f"{path.parent.name}/{path.name}: {problem}")

    def _accept(self, file: AnswerFile, entry: _AnswerEntry) -> None:
        item = self._find_item(entry)
        if file.number is not None:
            entry = _parse_response(item, entry.answer)
        if item.id in self.answers:
            first = self.answers[item.id].file.path.name
            raise _UnusableAnswerError(f"request {item.id} is already answered in {first}")
        if file.is_early(item.opened_at):
            raise _UnusableAnswerError(
                f"was written before request {item.id} was opened; answer it again"
            )
        value = _parse_value(item.kind.answer_form, entry.answer)
        if value is True and not entry.digest:
            raise _UnusableAnswerError(
                f'to approve request {item.id}, copy its "digest" from questions.json as well'
            )
        digest = entry.digest or item.digest
        self.answers[item.id] = FileAnswer(item.id, value, entry.text, digest, file)

    def _find_item(self, entry: _AnswerEntry) -> InboxItem:
        """Returns the request an entry answers."""
        answer = entry.answer.strip() if isinstance(entry.answer, str) else entry.answer
        unfilled = isinstance(answer, dict) and PLACEHOLDER in answer.values()
        if unfilled or answer in (None, "", PLACEHOLDER):
            raise _UnusableAnswerError(f"{entry.name!r} has no answer yet")
        number = entry.name.removeprefix("#")
        by_number = [item for item in self._open if number == str(item.id)]
        by_name = [item for item in self._open if self._names[item.id] == entry.name]
        match by_number or by_name:
            case [item]:
                return item
            case []:
                names = [self._names[item.id] or str(item.id) for item in self._open]
                listed = f"open requests: {', '.join(names[:12])}" if names else "none is open"
                raise _UnusableAnswerError(f"no open request is called {entry.name!r}; {listed}")
            case several:
                numbers = ", ".join(str(item.id) for item in several)
                raise _UnusableAnswerError(
                    f"{entry.name!r} matches several requests; use a number: {numbers}"
                )


def _parse_file(file: AnswerFile) -> list[_AnswerEntry]:
    try:
        text = file.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _UnusableAnswerError("is not UTF-8 text") from None
    if not text.strip():
        raise _UnusableAnswerError("is empty: no answer yet")
    if file.number is not None:
        return [_AnswerEntry(file.number, text)]
    try:
        entries = list(_parse_document(json.loads(text)))
    except (json.JSONDecodeError, RecursionError) as error:
        raise _UnusableAnswerError(f"is not JSON: no answers yet ({error})") from error
    except ValueError:
        raise _UnusableAnswerError("has a number with too many digits; put it in quotes") from None
    if not entries:
        raise _UnusableAnswerError(f"contains no answers; the format is {_EXAMPLE}")
    return entries


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
    decision, _, reason = text.strip().partition("\n")
    match item.kind.answer_form:
        case AnswerForm.TEXT | AnswerForm.WORK | AnswerForm.PICKS:
            return _AnswerEntry(str(item.id), text)
        case AnswerForm.PICK:
            return _AnswerEntry(str(item.id), decision.strip(), reason.strip())
        case AnswerForm.DECISION:
            decision, _, digest = decision.strip().partition(" ")
            return _AnswerEntry(str(item.id), decision.strip(), reason.strip(), digest.strip())
        case other:
            assert_never(other)


def _parse_value(form: AnswerForm, answer: Any) -> Any:
    if form is AnswerForm.PICKS:
        return answer
    if form is not AnswerForm.DECISION:
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if isinstance(answer, bool):
        return answer
    return _DECISIONS.get(str(answer).strip().casefold(), str(answer))
