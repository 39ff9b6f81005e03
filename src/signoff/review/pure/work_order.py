"""Literal edits, and the work order of a judge: Markdown with such edits for the engine.

An entry counts as a literal edit only if it is certain where its texts begin and end. Everything
else is left to the agent that gets the work order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from signoff.core.severity import Severity
from signoff.review.pure.record import Record

_SHARED, _EXCLUSIVE = 1, 2
"""How a character of the text is used: as an anchor of insertions, or by one change alone."""
_BREAK = re.compile(r"\r?\n")


class EditKind(StrEnum):
    """What happens to the text that `find` names."""

    REPLACE = "replace"
    INSERT_AFTER = "insert_after"
    DELETE = "delete"


@dataclass(frozen=True)
class Edit(Record):
    """One change; it is applied only if `find` occurs exactly once in the artifact.

    Line endings are those of the artifact, whatever the edit was written with. If `find` does not
    occur, its Unicode form and a line break at the end of the artifact may differ.
    """

    kind: EditKind
    find: str
    text: str = ""
    """The replacement or the inserted text; empty for a deletion."""
    issue: str = ""
    """The id of the issue it fixes."""


@dataclass(frozen=True)
class EditResult:
    """A text after its edits."""

    text: str
    applied: tuple[Edit, ...] = ()
    unmatched: tuple[tuple[Edit, str], ...] = ()
    """The edits that were skipped, and why."""


def apply_edits(text: str, edits: Sequence[Edit]) -> EditResult:
    """Applies every edit whose `find` occurs exactly once.

    All edits are matched against the original text, so none can match what another one wrote.
    Of two edits that overlap, the first is applied; but insertions may share an anchor. Two
    identical edits are applied once.
    """
    # One mark for each character: a list of spans would be searched once for every edit.
    marks = bytearray(len(text))
    changes: dict[tuple[EditKind, str, str], tuple[int, int, str]] = {}
    applied: list[Edit] = []
    unmatched: list[tuple[Edit, str]] = []
    line_break = _line_break(text)
    for edit in edits:
        same = (edit.kind, edit.find, edit.text)
        if same not in changes:
            (start, end), reason = find_passage(text, edit.find)
            inserts = edit.kind is EditKind.INSERT_AFTER
            used = marks[start:end] if not reason else b""
            if _EXCLUSIVE in used or (any(used) and not inserts):
                reason = "overlaps"
            if reason:
                unmatched.append((edit, reason))
                continue
            marks[start:end] = bytes([_SHARED if inserts else _EXCLUSIVE]) * (end - start)
            new = _new_text(edit, text[start:end], line_break)
            changes[same] = (end if inserts else start, end, new)
        applied.append(edit)
    return EditResult(_rewrite(text, list(changes.values())), tuple(applied), tuple(unmatched))


def find_passage(text: str, find: str) -> tuple[tuple[int, int], str]:
    """Returns the range of a passage, and why it cannot be used if it is not unique."""
    for spelling in _spellings(text, find):
        start = text.find(spelling)
        if start >= 0:
            # Overlapping matches are counted as one, but there are at least two.
            several = text.find(spelling, start + 1) >= 0
            reason = f"found {max(2, text.count(spelling))} times" if several else ""
            return (start, start + len(spelling)), reason
    return (-1, -1), "not found"


def _spellings(text: str, find: str) -> Iterator[str]:
    """Yields how a passage may be written in a text: exactly, then with what may differ."""
    breaks = [find, _BREAK.sub("\n", find), _BREAK.sub("\r\n", find)] if "\n" in find else [find]
    composed = [unicodedata.normalize("NFC", each) for each in breaks]
    decomposed = [unicodedata.normalize("NFD", each) for each in breaks]
    spellings = dict.fromkeys([*breaks, *composed, *decomposed])
    yield from filter(None, spellings)
    # The last line of a text may have no line break. Anywhere else, dropping it from `find`
    # could match the beginning of a longer line.
    trimmed = (each.rstrip("\r\n") for each in spellings if each.endswith("\n"))
    yield from (each for each in trimmed if each and text.endswith(each))


def _line_break(text: str) -> str:
    """Returns the line ending of a text; empty if it has none or several."""
    breaks, windows = text.count("\n"), text.count("\r\n")
    if windows == breaks:
        return "\r\n" if breaks else ""
    return "" if windows else "\n"


def _new_text(edit: Edit, passage: str, line_break: str) -> str:
    """Returns what an edit writes, with the line endings of the artifact."""
    if edit.kind is EditKind.DELETE:
        return ""
    new = _BREAK.sub(line_break, edit.text) if line_break else edit.text
    # The passage is the last line and has no line break, so its replacement gets none.
    trimmed = edit.find.endswith("\n") and not passage.endswith("\n")
    return new.removesuffix("\n").removesuffix("\r") if trimmed else new


def _rewrite(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    position = 0
    # An insertion has an empty range, so it sorts before a change that starts at its position.
    for start, end, new in sorted(changes, key=lambda change: change[:2]):
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])


LONGEST_WORK_ORDER = 1_000_000
"""Characters; a longer text is not a work order that a judge wrote on purpose."""

# The quantifiers are possessive: they never backtrack, so a hostile line takes linear time.
_ISSUE = re.compile(r"[#*_\s\d.)-]*+Issue:", re.IGNORECASE)
_SEVERITY = re.compile(rf"\((?:{'|'.join(Severity)})\)", re.IGNORECASE)
_LABEL = re.compile(
    r"[#*_\s-]*+(find|replace(?: with)?|with|anchor|insert(?: after)?)[*_]*+:[*_]*+[ \t]*+(.*+)",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"[#*_\s-]*+(?:(?:kind|action|edit|type):[*_]*+\s*+)?[*_`]*+"
    r"(replace|insert after|delete)[*_`:\s]*+",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\s*+(?:#{1,6}\s|\*\*.*+(?<=\*\*)|(?:Dismissed|Rejected)\b)", re.IGNORECASE)
_DISMISSED = re.compile(
    r"dismiss|reject|won'?t fix|not (?:to be )?(?:fixed|pursued)", re.IGNORECASE
)
_INLINE_CODE = re.compile(r"(`+)(.+?)\1")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^`]*")
# Labels of an entry. If one is inside a block that no label announced, a fence is missing or
# extra, and text and blocks can no longer be told apart.
_LABELS = re.compile(r"[#*_\s-]*(?:Issue|Find|Replace|Anchor|Insert)[*_]*:", re.IGNORECASE)

_DETAIL = re.compile(r"> - (?:problem|impact|fix|quote|rule|location): ")
"""Begins a line about an issue. It is quoted, so it cannot begin an entry or a block."""

_SECOND_LABELS = {
    "find": (EditKind.REPLACE, ("replace", "replace with", "with")),
    "anchor": (EditKind.INSERT_AFTER, ("insert", "insert after")),
}
"""The kind of edit that a label begins, and the labels that its second text may have."""


def parse_work_order(markdown: str) -> list[Edit]:
    """Returns the literal edits of a work order, in its order.

    Entries under a heading that dismisses them are skipped, and so is a work order that is too
    long.
    """
    if len(markdown) > LONGEST_WORK_ORDER:
        return []
    return [edit for entry in _entries(markdown) for edit in entry.edits()]


def work_order_entries(markdown: str) -> list[tuple[str, str]]:
    """Returns the entries that are not dismissed, each as its issue and its Markdown text."""
    lines = markdown.split("\n")
    entries = _entries(markdown)
    ends = [*(entry.start for entry in entries), len(lines)][1:]
    return [
        (entry.issue, "\n".join(lines[entry.start : end]).strip("\r\n"))
        for entry, end in zip(entries, ends, strict=True)
        if entry.issue and not entry.dismissed
    ]


def without_issues(markdown: str, issues: Collection[str]) -> str:
    """Returns a work order without the entries about some issues."""
    if not issues:
        return markdown
    lines = markdown.split("\n")
    end = len(lines)
    for entry in reversed(_entries(markdown)):
        if entry.issue in issues:
            del lines[entry.start : end]
        end = entry.start
    return "\n".join(lines)


def format_work_order(
    edits: Sequence[Edit],
    notes: Sequence[tuple[str, str, str]],
    severities: Mapping[str, str] | None = None,
    details: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Returns a work order of literal edits, and of notes as (issue, severity, description).

    `details` says what each issue is about. `parse_work_order` returns exactly these edits,
    whatever the texts, notes and details contain.
    """
    by_issue = {**{issue: severity for issue, severity, _ in notes}, **(severities or {})}
    entries = [(edit.issue, by_issue.get(edit.issue, ""), _instructions(edit)) for edit in edits]
    entries += [(issue, severity, _quote(text)) for issue, severity, text in notes]
    remaining = dict(details or {})
    parts = [
        "\n\n".join(filter(None, (_heading(issue, severity), body, _details(remaining, issue))))
        for issue, severity, body in entries
    ]
    return "\n\n".join(parts) + "\n" if parts else ""


def is_detail(line: str) -> bool:
    """Tells whether a line of a work order says what an issue is about, and not what to do."""
    return _DETAIL.match(line) is not None


@dataclass(frozen=True)
class _Line:
    """A line of a work order, or a whole code block."""

    number: int
    """The number of its first line, from 0."""
    text: str = ""
    block: str | None = None
    """The exact text between two fences."""
    broken: bool = False
    """From here on it is uncertain which lines are inside a block."""


class _WorkOrderEntry:
    """One entry while it is parsed: its texts so far, and whether they are reliable."""

    def __init__(self, issue: str, dismissed: bool, start: int) -> None:
        self.issue = issue
        self.dismissed = dismissed
        self.skipped = dismissed
        self.start = start
        self.kind = ""
        self.texts: list[tuple[str, str]] = []
        """Labels and their texts."""
        self._pending_label = ""

    def read(self, line: _Line) -> None:
        """Reads the next line of the entry."""
        if line.block is not None:
            # An unannounced block may be the rest of one that ended too early, so that the
            # text before it is incomplete.
            self._add_text(self._pending_label, line.block if self._pending_label else None)
            self._pending_label = ""
        elif line.text.strip():
            if self._pending_label:  # a label without a text or a block
                self.skipped = True
            self._read_text(line.text)

    def edits(self) -> list[Edit]:
        """Returns the literal edits of the entry; none if any part of it is ambiguous."""
        # An entry is applied as a whole or not at all. The agent gets what is skipped, and it can
        # see what was meant.
        if self.skipped or self._pending_label:
            return []
        edits: list[Edit] = []
        rest = self.texts[::-1]
        while rest:
            label, find = rest.pop()
            kind, second_labels = _SECOND_LABELS.get(label, (EditKind.DELETE, ()))
            if rest and rest[-1][0] in second_labels:
                text = rest.pop()[1]
            elif label == "find" and self.kind == "delete":
                kind, text = EditKind.DELETE, ""
            else:
                return []
            if not find:
                return []
            edits.append(Edit(kind, find, text, self.issue))
        return edits

    def _read_text(self, text: str) -> None:
        label = _LABEL.fullmatch(text)
        kind = _KIND.fullmatch(text)
        if label and (label[2] or not self._names_kind(label[1])):
            if label[2]:
                self._add_text(label[1].lower(), _literal(label[2].strip()))
            else:
                self._pending_label = label[1].lower()
        elif kind:
            self.kind = kind[1].lower()

    def _add_text(self, label: str, text: str | None) -> None:
        if text is None:
            self.skipped = True
        else:
            self.texts.append((label, text))

    def _names_kind(self, label: str) -> bool:
        """Whether `Replace:` is the kind of the entry: there are no texts before it."""
        return not self.texts and label.lower() in ("replace", "insert after")


def _entries(markdown: str) -> list[_WorkOrderEntry]:
    """Returns the parts of a work order; a part under another heading has no issue."""
    # An entry begins at its heading and ends at the next one, whatever is in between: text that is
    # taken for part of the wrong entry would be changed for the wrong reason.
    entries: list[_WorkOrderEntry] = []
    dismissed = False
    for line in _lines(markdown):
        issue = _ISSUE.match(line.text)
        if line.broken:
            if entries:
                entries[-1].skipped = True
        elif issue:
            entries.append(_entry(line.text[issue.end() :], dismissed, line.number))
        elif _is_heading(line.text):
            dismissed = bool(_DISMISSED.search(line.text))
            entries.append(_WorkOrderEntry("", dismissed=True, start=line.number))
        elif entries:
            entries[-1].read(line)
    return entries


def _entry(heading: str, dismissed: bool, start: int) -> _WorkOrderEntry:
    severity = _SEVERITY.search(heading)
    name = heading[: severity.start()] if severity else heading
    rest = heading[severity.end() :] if severity else ""
    return _WorkOrderEntry(
        name.strip(" \t\r*_:`"), dismissed or bool(_DISMISSED.search(rest)), start
    )


def _is_heading(text: str) -> bool:
    """Whether a line begins a new part, instead of being a label inside an entry."""
    return bool(_HEADING.match(text.rstrip())) and not (
        _KIND.fullmatch(text) or _LABEL.fullmatch(text)
    )


def _lines(markdown: str) -> Iterator[_Line]:
    """Yields lines and whole code blocks; the last one may mark the rest as broken."""
    # `splitlines` would also split at a form feed or a lone carriage return inside a text.
    lines = markdown.split("\n")
    index = 0
    announced = False
    while index < len(lines):
        line = lines[index].rstrip("\r")
        opening = _FENCE.fullmatch(line)
        if opening is None:
            yield _Line(index, line)
            label = line.rstrip().rstrip("*_").endswith(":")
            announced = label or (announced and not line.strip())
            index += 1
            continue
        end = _find_end(lines, index + 1, opening[1])
        inside = lines[index + 1 : end]
        if end == len(lines) or (not announced and any(map(_LABELS.match, inside))):
            yield _Line(index, broken=True)
            return
        # The break before the closing fence is not part of the text. In a work order with CRLF,
        # its carriage return is at the end of the last line.
        text = "\n".join(inside)
        yield _Line(index, block=text.removesuffix("\r") if lines[index] != line else text)
        index, announced = end + 1, False


def _find_end(lines: list[str], start: int, fence: str) -> int:
    closes = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t\r]*")
    return next((n for n in range(start, len(lines)) if closes.fullmatch(lines[n])), len(lines))


def _literal(text: str) -> str | None:
    """Returns the literal text of a value on a label's line; None if it is uncertain."""
    code = _INLINE_CODE.fullmatch(text)
    if code:
        return code[2]
    if text.startswith("`"):
        return None
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1] if quoted else text


def _heading(issue: str, severity: str) -> str:
    name = " ".join(issue.split())
    return f"### Issue: {name} ({severity})" if severity else f"### Issue: {name}"


def _instructions(edit: Edit) -> str:
    match edit.kind:
        case EditKind.REPLACE:
            return f"Replace\n\n{_block('Find', edit.find)}\n\n{_block('Replace', edit.text)}"
        case EditKind.INSERT_AFTER:
            return f"Insert after\n\n{_block('Anchor', edit.find)}\n\n{_block('Insert', edit.text)}"
        case EditKind.DELETE:
            return f"Delete\n\n{_block('Find', edit.find)}"


def _block(label: str, text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    # A longer fence than any inside keeps literal text literal, whatever it contains.
    fence = "`" * max(3, longest + 1)
    return f"{label}:\n{fence}\n{text}\n{fence}"


def _details(remaining: dict[str, Mapping[str, str]], issue: str) -> str:
    """Returns what an issue is about, once: an issue with several edits has several entries."""
    lines = remaining.pop(issue, {}).items()
    return "\n".join(f"> - {name}: {' '.join(text.split())}" for name, text in lines if text)


def _quote(text: str) -> str:
    """Returns a text as a Markdown quotation, so that no line of it can begin an entry or block."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n"))
