"""Files as critics see them, and which file an issue of theirs is about.

A file is shown as a whole, or, in a review of changes, as a unified diff. A critic names the file
of each issue. A name that was not among those it was given is a problem of its answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from signoff.review.artifact import ArtifactVersion, locate
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.diff import Change, changes
from signoff.review.prompt_text import enclose, flat

CONTEXT = 12
"""Lines around a change that critics see."""
NOT_CHANGED = "not on a changed line"
"""Why a finding about an old line is set aside in a review of changes."""


class ShownFile(NamedTuple):
    """One file in the prompt of a critic."""

    path: str
    text: str
    """The whole text, or the diff."""
    diff: bool = False

    @property
    def enclosed(self) -> str:
        """The file between delimiters."""
        kind = "CHANGES" if self.diff else "FILE"
        return enclose(f"{kind} {flat(self.path)}", self.text)


def show_files(
    files: Mapping[str, str], base: Mapping[str, str], paths: Sequence[str]
) -> list[ShownFile]:
    """Returns files for a critic: a changed one as a diff, a new one and any other as a whole."""
    return [
        ShownFile(path, diff_text(base[path], files[path]), diff=True)
        if base.get(path)
        else ShownFile(path, files[path])
        for path in paths
    ]


def diff_text(old: str, new: str) -> str:
    """Returns the changes between two texts as the hunks of a unified diff."""
    before, after = old.split("\n"), new.split("\n")
    lines: list[str] = []
    for group in _groups(before, after):
        first, last = group[0], group[-1]
        start = max(0, first.new_start - CONTEXT)
        lines.append(f"@@ line {start + 1} @@")
        position = start
        for change in group:
            lines += [f" {line}" for line in after[position : change.new_start]]
            lines += [f"-{line}" for line in before[change.old_start : change.old_end]]
            lines += [f"+{line}" for line in after[change.new_start : change.new_end]]
            position = change.new_end
        lines += [f" {line}" for line in after[position : last.new_end + CONTEXT]]
    return "\n".join(lines)


def _groups(old: Sequence[str], new: Sequence[str]) -> list[list[Change]]:
    """Returns changes by hunk: those whose context meets are in one."""
    groups: list[list[Change]] = []
    for change in changes(old, new):
        # Hunks whose context would overlap are one: a line that is shown twice is reported twice.
        near = groups and change.new_start - groups[-1][-1].new_end <= 2 * CONTEXT
        if near:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def assign_files(
    critique: Critique, shown: Sequence[ShownFile], version: ArtifactVersion
) -> tuple[Critique, list[str]]:
    """Returns a critique whose issues name files that were shown, and messages about the others.

    An issue that names no file is about the only one, or the only one with its quote. One that
    names another file is a mistake; if its quote is in one file only, it is about that one, and
    otherwise it has no valid evidence.
    """
    problems: list[str] = []
    issues = [_assigned(issue, shown, version, problems) for issue in critique.issues]
    if problems:
        problems.append(f"`path` must be one of: {', '.join(flat(each.path) for each in shown)}")
    return replace(critique, issues=tuple(issues)), problems


def _assigned(
    issue: CritiqueIssue,
    shown: Sequence[ShownFile],
    version: ArtifactVersion,
    problems: list[str],
) -> CritiqueIssue:
    diffs = {each.path: each.diff for each in shown}
    name = issue.path.strip().removeprefix("./")
    # A finding about a file that the critic was not shown cannot be checked, and may be invented.
    if name not in diffs:
        wrong = name
        having = [path for path in diffs if _quote_in(issue, version, path, diff=diffs[path])]
        by_quote = having if not (wrong and issue.omission) else []
        candidates = list(diffs) if len(diffs) == 1 and not wrong else by_quote
        name = candidates[0] if len(candidates) == 1 else ""
        what = f"the file {flat(issue.path)[:200]!r}, which is not part of this review"
        if wrong or not name:
            problems.append(f"{issue.id} names {what if wrong else 'no file'}")
    if not name:
        return replace(issue, path="", unverified=True)
    quote = _quote_in(issue, version, name, diff=diffs[name])
    return replace(issue, path=name, evidence=quote or issue.evidence)


def _quote_in(
    issue: CritiqueIssue, version: ArtifactVersion, path: str, *, diff: bool
) -> str | None:
    """Returns the quote as a file has it: without the marks of a diff; None if it has not."""
    text = version.text(path)
    if issue.omission or text.contains(issue.evidence):
        return issue.evidence
    lines = issue.evidence.split("\n")
    if diff and all(line[:1] in ("+", " ", "") for line in lines):
        unmarked = "\n".join(line[1:] for line in lines)
        return unmarked if unmarked.strip() and text.contains(unmarked) else None
    return None


def is_unchanged_line(
    issue: CritiqueIssue, version: ArtifactVersion, base: Mapping[str, str]
) -> bool:
    """Whether an issue is about a line that a change did not touch."""
    return issue.path in base and not _is_on_change(issue, version, base[issue.path])


def set_aside_unchanged(
    critique: Critique, version: ArtifactVersion, base: Mapping[str, str]
) -> Critique:
    """Returns a critique in which issues about lines that a change did not touch are set aside."""
    issues = tuple(
        replace(issue, set_aside=issue.set_aside or NOT_CHANGED)
        if is_unchanged_line(issue, version, base)
        else issue
        for issue in critique.issues
    )
    return replace(critique, issues=issues)


def _is_on_change(issue: CritiqueIssue, version: ArtifactVersion, old: str) -> bool:
    """Whether an issue is about a changed line; what is missing may be missing anywhere."""
    found = locate(version, issue.evidence, issue.path, issue.line)
    # In doubt a finding counts: setting one aside by mistake would hide it from everybody.
    if not old or issue.omission or found is None:
        return True
    changed = _changed_lines(old, version.files[issue.path])
    return any(line in changed for line in range(found.line, found.end_line + 1))


@lru_cache(maxsize=256)
def _changed_lines(old: str, new: str) -> frozenset[int]:
    """Returns the new or changed lines, from 1; where lines were removed, those next to it."""
    after = new.split("\n")
    found: set[int] = set()
    for change in changes(old.split("\n"), after):
        if change.new_start < change.new_end:
            found.update(range(change.new_start + 1, change.new_end + 1))
        else:
            found.update(n for n in (change.new_start, change.new_start + 1) if n <= len(after))
    return frozenset(found - {0})
