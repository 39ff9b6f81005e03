"""The work order of a judge: Markdown for humans and agents, with literal edits for the engine.

An entry counts as a literal edit only if it is certain where its texts begin and end. Everything
else is left to the agent that gets the work order.
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


def format_work_order(
    edits: Sequence[Edit],
    notes: Sequence[tuple[str, str, str]],
    severities: Mapping[str, str] | None = None,
) -> str:
    """Returns a work order of literal edits, and of notes as (issue, severity, description).

    `parse_work_order` returns exactly these edits, whatever the texts and notes contain.
    """
    by_issue = {**{issue: severity for issue, severity, _ in notes}, **(severities or {})}
    parts = [_edit_entry(edit, by_issue.get(edit.issue, "")) for edit in edits]
    parts += [f"{_heading(issue, severity)}\n\n{_quote(text)}" for issue, severity, text in notes]
    return "\n\n".join(parts) + "\n" if parts else ""


class _WorkOrderEntry:
    """One entry while it is parsed: its texts so far, and whether they are reliable."""

    def __init__(self, issue: str, dismissed: bool, start: int) -> None:
        self.issue = issue
        self.dismissed = dismissed
        self.skipped = dismissed
        self.start = start
        self.kind = ""
        self.texts: list[tuple[str, str, bool]] = []
        self._pending_label = ""

    def read(self, line: WorkOrderLine) -> None:
        """Reads the next line of the entry."""
        if line.fenced is not None:
            self._read_block(line.fenced)
            return
        if not line.text.strip():
            return
        if self._pending_label:  # a label without a text or a block
            self.skipped = True
        self._read_text(line.text)

    def edits(self) -> list[Edit]:
        """Returns the literal edits of the entry; none if any part of it is ambiguous."""
        if self.skipped or self._pending_label:
            return []
        edits: list[Edit] = []
        rest = self.texts
        while rest:
            edit, rest = self._next(rest)
            if edit is None:
                return []
            edits.append(edit)
        return edits

    def _read_block(self, block: CodeBlock) -> None:
        if not self._pending_label:
            # An unannounced block may be the rest of one that ended too early, so that the
            # text before it is incomplete.
            self.skipped = True
            return
        self.texts.append((self._pending_label, block.text, True))
        self._pending_label = ""

    def _read_text(self, text: str) -> None:
        label = _LABEL.fullmatch(text)
        kind = _KIND.fullmatch(text)
        if label and (label.group(2) or not self._names_kind(label.group(1))):
            self._read_label(label.group(1).lower(), label.group(2).strip())
        elif kind:
            self.kind = kind.group(1).lower()

    def _names_kind(self, label: str) -> bool:
        """Whether `Replace:` is the kind of the entry: there are no texts before it."""
        return not self.texts and label.lower() in ("replace", "insert after")

    def _read_label(self, label: str, inline: str) -> None:
        if inline:
            self.texts.append((label, inline, False))
        else:
            self._pending_label = label

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
    """Returns the parts of a work order; a part under another heading has no issue."""
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


def _literal(value: tuple[str, str, bool]) -> str | None:
    """Returns the literal text of a value; None if it is uncertain where it ends."""
    _, text, is_block = value
    if is_block:
        return text
    code = _INLINE_CODE.fullmatch(text)
    if code:
        return code.group(2)
    if "`" in text[:1]:
        return None
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1] if quoted else text


def _heading(issue: str, severity: str) -> str:
    name = " ".join(issue.split())
    return f"### Issue: {name} ({severity})" if severity else f"### Issue: {name}"


def _edit_entry(edit: Edit, severity: str) -> str:
    return f"{_heading(edit.issue, severity)}\n\n{_instructions(edit)}"


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
    fence = "`" * max(3, longest + 1)
    return f"{label}:\n{fence}\n{text}\n{fence}"


def _quote(text: str) -> str:
    """Returns a text as a Markdown quotation, so that no line of it can begin an entry or block."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n"))
