"""The bill of work: what is to be changed, as Markdown people read and literal edits machines make.

An entry is taken for a literal edit only if there is no doubt about where its texts begin and
end; everything else is left for whoever reads the bill.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from signoff.core.severity import Severity
from signoff.review.edit import Edit, EditKind
from signoff.review.edits import EditResult, apply_edits
from signoff.review.work_order_parser import CodeBlock, WorkOrderLine, read_lines

__all__ = [
    "EditResult",
    "apply_edits",
    "format_work_order",
    "parse_work_order",
    "work_order_entries",
]

LONGEST_BILL = 1_000_000
"""Characters; what is longer was not written by a judge who meant it."""

# The quantifiers give nothing back, so that no line is read twice however it is made.
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


def parse_work_order(markdown: str) -> list[Edit]:
    """Returns the literal edits of a bill, in its order.

    Entries under a heading that dismisses them are not work, and give none; nor does a bill
    too long for anybody to have read.
    """
    if len(markdown) > LONGEST_BILL:
        return []
    return [edit for entry in _entries(markdown) for edit in entry.edits()]


def work_order_entries(markdown: str) -> list[tuple[str, str]]:
    """Returns the entries of a bill that are work, each with its issue and in its own words."""
    lines = markdown.split("\n")
    found = _entries(markdown)
    ends = [*(entry.start for entry in found), len(lines)][1:]
    return [
        (entry.issue, "\n".join(lines[entry.start : end]).strip("\r\n"))
        for entry, end in zip(found, ends, strict=True)
        if entry.issue and not entry.dismissed
    ]


def format_work_order(
    edits: Sequence[Edit],
    notes: Sequence[tuple[str, str, str]],
    severities: Mapping[str, str] | None = None,
) -> str:
    """Returns a bill of literal edits and of work that needs hands: (issue, severity, words).

    `parse_work_order` reads exactly the edits back, whatever their texts and the words are.
    """
    known = {**{issue: severity for issue, severity, _ in notes}, **(severities or {})}
    parts = [_edit_entry(edit, known.get(edit.issue, "")) for edit in edits]
    parts += [f"{_head(issue, severity)}\n\n{_quoted(words)}" for issue, severity, words in notes]
    return "\n\n".join(parts) + "\n" if parts else ""


class _WorkOrderEntry:
    """One entry while it is read: the texts found so far, and whether they can be trusted."""

    def __init__(self, issue: str, dismissed: bool, start: int) -> None:
        self.issue = issue
        self.dismissed = dismissed
        self.skipped = dismissed
        self.start = start
        self.kind = ""
        self.texts: list[tuple[str, str, bool]] = []
        self._awaited = ""

    def take(self, line: WorkOrderLine) -> None:
        """Takes the next line of the entry."""
        if line.fenced is not None:
            self._take_block(line.fenced)
            return
        if not line.text.strip():
            return
        if self._awaited:  # a label with nothing behind it, and no block either
            self.skipped = True
        self._take_words(line.text)

    def edits(self) -> list[Edit]:
        """Returns what the entry asks for literally; nothing if any of it is in doubt."""
        if self.skipped or self._awaited:
            return []
        made: list[Edit] = []
        rest = self.texts
        while rest:
            edit, rest = self._next(rest)
            if edit is None:
                return []
            made.append(edit)
        return made

    def _take_block(self, block: CodeBlock) -> None:
        if not self._awaited:
            # Also what a block that ended too early looks like: then its text is not all there.
            self.skipped = True
            return
        self.texts.append((self._awaited, block.text, True))
        self._awaited = ""

    def _take_words(self, text: str) -> None:
        label = _LABEL.fullmatch(text)
        kind = _KIND.fullmatch(text)
        if label and (label.group(2) or not self._names_kind(label.group(1))):
            self._take_label(label.group(1).lower(), label.group(2).strip())
        elif kind:
            self.kind = kind.group(1).lower()

    def _names_kind(self, label: str) -> bool:
        """Tells whether `Replace:` is the kind of the entry: nothing has been found yet."""
        return not self.texts and label.lower() in ("replace", "insert after")

    def _take_label(self, label: str, inline: str) -> None:
        if inline:
            self.texts.append((label, inline, False))
        else:
            self._awaited = label

    def _next(
        self, texts: list[tuple[str, str, bool]]
    ) -> tuple[Edit | None, list[tuple[str, str, bool]]]:
        first, second = texts[0], texts[1] if len(texts) > 1 else None
        if first[0] == "find" and second and second[0] in ("replace", "replace with", "with"):
            return self._pair(EditKind.REPLACE, first, second), texts[2:]
        if first[0] == "anchor" and second and second[0] in ("insert", "insert after"):
            return self._pair(EditKind.INSERT_AFTER, first, second), texts[2:]
        if first[0] == "find" and self.kind == "delete":
            return self._pair(EditKind.DELETE, first, ("", "", True)), texts[1:]
        return None, []

    def _pair(
        self, kind: EditKind, first: tuple[str, str, bool], second: tuple[str, str, bool]
    ) -> Edit | None:
        find, text = _literal(first), _literal(second)
        if not find or text is None:
            return None
        return Edit(kind, find, text, self.issue)


def _entries(markdown: str) -> list[_WorkOrderEntry]:
    """Returns the parts of a bill; what stands under other headings has no issue."""
    entries: list[_WorkOrderEntry] = []
    dismissed = False
    for line in read_lines(markdown):
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
            entries[-1].take(line)
    return entries


def _entry(heading: str, dismissed: bool, start: int) -> _WorkOrderEntry:
    severity = _SEVERITY.search(heading)
    name = heading[: severity.start()] if severity else heading
    rest = heading[severity.end() :] if severity else ""
    return _WorkOrderEntry(
        name.strip(" \t\r*_:`"), dismissed or bool(_DISMISSED.search(rest)), start
    )


def _is_heading(text: str) -> bool:
    """Tells whether a line begins a part of the bill, and not a part of an entry."""
    return bool(_HEADING.match(text.rstrip())) and not (
        _KIND.fullmatch(text) or _LABEL.fullmatch(text)
    )


def _literal(said: tuple[str, str, bool]) -> str | None:
    """Returns the literal text of a value; None where its end is in doubt."""
    _, text, block = said
    if block:
        return text
    code = _INLINE_CODE.fullmatch(text)
    if code:
        return code.group(2)
    if "`" in text[:1]:
        return None
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1] if quoted else text


def _head(issue: str, severity: str) -> str:
    name = " ".join(issue.split())
    return f"### Issue: {name} ({severity})" if severity else f"### Issue: {name}"


def _edit_entry(edit: Edit, severity: str) -> str:
    return f"{_head(edit.issue, severity)}\n\n{_work(edit)}"


def _work(edit: Edit) -> str:
    match edit.kind:
        case EditKind.REPLACE:
            return f"Replace\n\n{_block('Find', edit.find)}\n\n{_block('Replace', edit.text)}"
        case EditKind.INSERT_AFTER:
            return f"Insert after\n\n{_block('Anchor', edit.find)}\n\n{_block('Insert', edit.text)}"
        case EditKind.DELETE:
            return f"Delete\n\n{_block('Find', edit.find)}"


def _block(label: str, text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{label}:\n{fence}\n{text}\n{fence}"


def _quoted(words: str) -> str:
    """Returns words as a quotation: no line of one can begin an entry, or a block."""
    return "\n".join(f"> {line}".rstrip() for line in words.strip().split("\n"))
