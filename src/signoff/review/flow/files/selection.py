"""Chooses the files of a review: those that are named, those in folders, or those of a change.

A file that is named is reviewed whatever it is called. In folders, what git ignores, hidden,
generated, vendored and lock files and those of `.signoffignore` are left out and named; so are
files that are binary or empty. A file that is too large or unreadable is missing from the review.
The files are read once, before the run starts, and everything after works on that copy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any

from signoff.core.errors import UsageError
from signoff.documents.globs import matches
from signoff.review.flow import coverage
from signoff.review.flow.decision_file import read_decisions
from signoff.review.flow.files.git import ChangedFile, Repository
from signoff.review.flow.model import Flow, StepKind
from signoff.review.flow.state import FILE_WARNINGS
from signoff.review.pure.artifact import ArtifactVersion
from signoff.review.pure.coverage import ReviewCoverage, by_reason
from signoff.review.pure.lasting_decision import LastingDecision, dismissed_before


class NothingToReviewError(UsageError):
    """No file is left that a critic could read."""

    def __init__(self, selection: Selection) -> None:
        lines = ["there is nothing to review", *selection.coverage.lines()]
        super().__init__("; ".join(lines))
        self.selection = selection


def read_files(flow: Flow, _params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the files of a flow as parameters of its run; raises `UsageError` if it has none."""
    return prepared(flow, select(flow))


def select(flow: Flow) -> Selection:
    """Returns the files that a flow's `artifact` names."""
    source = flow.config.artifact
    if source is None:
        raise UsageError("the flow names no files: it has no artifact")
    selector = FileSelector(flow.root, flow.root)
    # A change is reviewed by its files; folders and patterns then only narrow it down.
    if source.since is not None:
        return selector.changed_since(source.since, source.every_path, source.intent)
    return selector.select(source.every_path, source.globs)


def prepared(
    flow: Flow,
    selection: Selection,
    *,
    decisions: Sequence[LastingDecision] | None = None,
    trusted: Mapping[str, str] | None = None,
    unchecked: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Returns a selection as parameters of a run; raises `NothingToReviewError` if it is empty.

    `decisions` are those of the project unless others are given, and `trusted` the texts whose
    comments may dismiss findings. `unchecked` are constraints that are left out, and why.
    """
    source = flow.config.artifact
    unmatched = _unmatched(source.globs if source is not None else (), selection)
    selection = covered(flow, selection)
    if not selection.files:
        raise NothingToReviewError(selection)
    every_line = source is not None and source.all_lines
    known = read_decisions(flow.home) if decisions is None else decisions
    version, renamed = ArtifactVersion(selection.files), selection.renamed
    today = date.today()  # noqa: DTZ011  # decisions hold by the user's own calendar
    return {
        **({FILE_WARNINGS: unmatched} if unmatched else {}),
        "files": dict(selection.files),
        "base": {} if every_line else dict(selection.base),
        "renamed": dict(selection.renamed),
        "deleted": list(selection.deleted),
        "skipped": dict(selection.skipped),
        "unchecked": {**_about_nothing(flow, selection.files), **(unchecked or {})},
        "intent": selection.intent or (source.intent if source else ""),
        "trusted": dict(trusted) if trusted is not None else None,
        "decisions": [each.to_json() for each in dismissed_before(known, version, renamed, today)],
        "rule_decisions": [
            each.to_json() for each in known if each.all_like and not each.has_ended(today)
        ],
    }


def _about_nothing(flow: Flow, files: Iterable[str]) -> dict[str, str]:
    """Returns the constraints that are about none of some files: a path may be misspelled."""
    rules = [each for step in flow.of_kind(StepKind.CRITIQUE) for each in flow.selected(step)]
    return {
        each.id: "about none of these files"
        for each in rules
        if not any(each.applies_to(path) for path in files)
    }


def _unmatched(globs: Sequence[str], selection: Selection) -> list[str]:
    """Returns a warning for each pattern that is about no file: it may be misspelled."""
    paths = (*selection.files, *selection.skipped)
    return [
        f"artifact.globs: {pattern!r} matches no file"
        for pattern in globs
        if not pattern.startswith("!") and not any(matches([pattern], path) for path in paths)
    ]


def covered(flow: Flow, selection: Selection) -> Selection:
    """Returns a selection without the files that no critic reads against any constraint.

    In a folder or a change, a rule leaves them out. A file that the user named is missing from the
    review, because whoever names a file expects a verdict about it.
    """
    rules = [each for step in flow.of_kind(StepKind.CRITIQUE) for each in flow.selected(step)]
    # A constraint that was not about a file where it was before has not been checked there.
    moved = {
        path: ""
        for path, old in selection.renamed.items()
        if any(each.applies_to(path) and not each.applies_to(old) for each in rules)
    }
    selection = replace(selection, base={**selection.base, **moved})
    unruled = [path for path in selection.files if not any(r.applies_to(path) for r in rules)]
    if not rules or not unruled:
        return selection

    def why(path: str) -> coverage.Skip:
        return coverage.Skip.UNCOVERED if path in selection.named else coverage.Skip.UNRULED

    return replace(
        selection,
        files={path: text for path, text in selection.files.items() if path not in unruled},
        base={path: text for path, text in selection.base.items() if path not in unruled},
        skipped={**selection.skipped, **{path: why(path).value for path in unruled}},
    )


def skipped_note(selection: Selection) -> str:
    """Returns how many files are not read and why, for a sentence; empty if all are."""
    found = selection.coverage
    notes = ""
    for title, entries in (("not read", found.missed), ("left out", found.left_out)):
        counts = [f"{len(names)} {why}" for why, names in by_reason(entries).items()]
        notes += f"; {title}: {', '.join(counts)}" if counts else ""
    return notes


Skipped = MutableMapping[str, str]
"""Files that are not read, each with the value of its `Skip`."""

MOST_FILES = 2_000
"""Files that one review can be about."""


@dataclass(frozen=True)
class Selection:
    """The files of a review, with everything that is recorded about them."""

    files: Mapping[str, str]
    """Texts by path, relative to the project's folder."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """The files that are not read, each with the value of its `Skip`."""
    base: Mapping[str, str] = field(default_factory=dict)
    """Of a change: what the files were before, by the present path; empty for new files."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Of a change: where a file was before."""
    deleted: tuple[str, ...] = ()
    intent: str = ""
    named: frozenset[str] = frozenset()
    """The files that the user named one by one: no rule may leave them out in silence."""

    @property
    def coverage(self) -> ReviewCoverage:
        """What is not read, and why."""
        return coverage.file_coverage(self.skipped)


@dataclass(frozen=True)
class FileSelector:
    """Looks for files below a project's folder."""

    root: Path
    cwd: Path
    """Where relative paths that a user names start."""
    trusted: Path | None = None
    """The project before a change, if the change must not decide what is left out."""

    def select(self, paths: Sequence[str], globs: Sequence[str] = ()) -> Selection:
        """Returns the files that paths and patterns name; raises `UsageError` for a wrong one."""
        skipped: dict[str, str] = {}
        named = self._named(paths)
        found = dict.fromkeys(named)
        for path in dict.fromkeys(path for path in paths if self._is_folder(path)):
            folder, known = self._inside(path), len(skipped)
            inside = self._in_folder(folder, skipped)
            found |= dict.fromkeys(inside)
            if not inside and len(skipped) == known:
                skipped.setdefault(f"{folder}/", coverage.Skip.NO_FILES.value)
        if globs:
            others: dict[str, str] = {}
            matched = [p for p in self._in_folder(".", others) if matches(globs, p)]
            found |= dict.fromkeys(matched)
            skipped |= {path: why for path, why in others.items() if matches(globs, path)}
        _check_number(len(found))
        files = dict(self._read(list(found), set(named), skipped))
        skipped = {path: why for path, why in skipped.items() if path not in files}
        return Selection(files, skipped, named=frozenset(named))

    def changed_since(self, revision: str, paths: Sequence[str], intent: str = "") -> Selection:
        """Returns the files that have changed since a revision, and what they were before."""
        repository = self.repository()
        commit = repository.fork_point(repository.commit(revision))
        inside = [self._inside(path) for path in paths] or ["."]
        changes = repository.changes(commit, inside)
        self._check_named(paths, [each.path for each in changes])
        _check_number(len(changes))
        skipped: dict[str, str] = {}
        present = [each for each in changes if not each.deleted]
        # Where no file has a name that is on the disk, the user named one that was deleted.
        named = frozenset(self._named(path for path in paths if (self.cwd / path).exists()))
        others = [each.path for each in present if each.path not in named]
        kept = named.union(self._worth_reading(repository, others, skipped))
        wanted = [each.path for each in present if each.path in kept]
        base = _base_texts(repository, commit, present)
        # Nobody has read a file where it was left out; so when it moves, all of it is new.
        moved = {each.path: each.old_path for each in present if _is_renamed(each)}
        read_before = set(self._worth_reading(repository, [*moved.values()], {}))
        base |= {path: "" for path, old in moved.items() if old not in read_before}
        # A change could call its own files generated; then only what they were before counts.
        plain = {path for path, text in base.items() if not coverage.says_generated(text)}
        doubted = plain if self.trusted is not None else set()
        files = dict(self._read(wanted, doubted | named, skipped, refuse=False))
        for path in wanted:
            why = skipped.get(_shown(path))
            if why == coverage.Skip.GONE.value:
                skipped[_shown(path)] = coverage.Skip.ABSENT.value
            elif base[path] and why in (coverage.Skip.BINARY.value, coverage.Skip.LINK.value):
                skipped[_shown(path)] = coverage.Skip.REPLACED.value
        for path in repository.filtered([*files]):
            del files[path]
            skipped[path] = coverage.Skip.FILTERED.value
        chosen = [each for each in present if each.path in files]
        return Selection(
            files,
            skipped,
            base={
                path: _line_ends_as_in(files[path], base[path]) for path in base if path in files
            },
            renamed={e.path: e.old_path for e in chosen if _is_renamed(e)},
            deleted=tuple(
                each.path for each in changes if each.deleted and coverage.is_utf8(each.path)
            ),
            intent=intent or repository.messages(commit),
            named=named,
        )

    def repository(self) -> Repository:
        """Returns the project's git repository; raises `UsageError` if there is none."""
        repository = Repository.around(self.root)
        if repository is None:
            raise UsageError(
                "this project is not in a git repository, so its changes are not known; "
                "name files or folders to review instead"
            )
        return repository

    def _check_named(self, paths: Sequence[str], changed: Sequence[str]) -> None:
        """Raises `UsageError` for a path that exists neither now nor before the change."""
        for path in paths:
            inside = PurePosixPath(self._inside(path))
            known = any(PurePosixPath(each).is_relative_to(inside) for each in changed)
            if not known and not (self.cwd / path).exists():
                raise UsageError(f"there is no file or folder {path!r}")

    def _is_folder(self, path: str) -> bool:
        return (self.cwd / path).is_dir()

    def _named(self, paths: Iterable[str]) -> list[str]:
        """Returns the files that the user names; folders are looked into later."""
        named = dict[str, None]()
        for path in paths:
            relative = self._inside(path)
            if not (self.cwd / path).exists():
                raise UsageError(f"there is no file or folder {path!r}")
            if not self._is_folder(path):
                named[relative] = None
        return list(named)

    def _inside(self, path: str) -> str:
        """Returns a path as seen from the project; raises `UsageError` for one outside of it."""
        root, whole = self.root.resolve(), (self.cwd / path).resolve()
        if not whole.is_relative_to(root):
            raise UsageError(
                f"{path} is outside of the project {root}; only files of the project can be "
                "reviewed (run the command in the other project, or pipe the text in)"
            )
        return whole.relative_to(root).as_posix()

    def _in_folder(self, folder: str, skipped: Skipped) -> list[str]:
        repository = Repository.around(self.root)
        listed = repository.files(folder) if repository else list(self._walk(folder, skipped))
        return self._worth_reading(repository, listed, skipped)

    def _walk(self, folder: str, skipped: Skipped) -> Iterator[str]:
        for here, folders, names in os.walk(self.root / folder):
            below = Path(here).relative_to(self.root)
            for name in folders:
                if (why := coverage.skip_folder(name)) is not None:
                    skipped[f"{_shown((below / name).as_posix())}/"] = why.value
            folders[:] = sorted(name for name in folders if not coverage.is_built(name))
            yield from ((below / name).as_posix() for name in sorted(names))

    def _worth_reading(
        self, repository: Repository | None, paths: Sequence[str], skipped: Skipped
    ) -> list[str]:
        patterns = coverage.ignore_patterns(self.trusted or self.root)
        known = repository is not None and paths and self.trusted is None
        marked = repository.marked(paths) if repository is not None and known else {}
        wanted = []
        for path in paths:
            why = (
                coverage.Skip.IGNORED
                if coverage.is_ignored(patterns, path)
                else coverage.skip_by_name(path)
            )
            why = why or (coverage.Skip(marked[path]) if path in marked else None)
            if why is None:
                wanted.append(path)
            else:
                skipped[_shown(path)] = why.value
        return wanted

    def _read(
        self, paths: Sequence[str], named: set[str], skipped: Skipped, *, refuse: bool = True
    ) -> Iterator[tuple[str, str]]:
        """Yields texts by path; files in `named` are read even if they say they are generated."""
        for path in paths:
            content: str | coverage.Skip = coverage.Skip.NAME
            if coverage.is_utf8(path):
                content = coverage.read_content(self.root / path, generated=path in named)
            if isinstance(content, str):
                yield path, content
                continue
            if refuse and path in named and content is not coverage.Skip.EMPTY:
                raise UsageError(f"{path} cannot be reviewed: {_PROBLEMS[content]}")
            skipped[_shown(path)] = content.value


def piped_text(content: bytes) -> Selection:
    """Returns standard input as the file of a review; raises `UsageError` if it is no text."""
    text = coverage.decoded(content)
    if text is coverage.Skip.EMPTY:
        return Selection({}, {"stdin": text.value})
    if isinstance(text, coverage.Skip):
        raise UsageError(f"standard input cannot be reviewed: {_PROBLEMS[text]}")
    return Selection({"stdin": text})


_PROBLEMS = {
    coverage.Skip.BINARY: "it is not UTF-8 text",
    coverage.Skip.ENCODING: "it is not UTF-8 text",
    coverage.Skip.UNREADABLE: "it cannot be opened; check its permissions",
    coverage.Skip.LARGE: "it is larger than 256,000 bytes; split it, or review a part of it",
    coverage.Skip.LINK: "it is a link or no regular file; name the file itself",
    coverage.Skip.FOLDER: "it is a folder",
    coverage.Skip.GONE: "it does not exist any more",
    coverage.Skip.NAME: "its name is not UTF-8; rename it",
}


def _shown(path: str) -> str:
    """Returns a path as it can be recorded; other bytes of a name are escaped."""
    return path if coverage.is_utf8(path) else os.fsencode(path).decode("utf-8", "backslashreplace")


def _check_number(files: int) -> None:
    if files > MOST_FILES:
        raise UsageError(
            f"{files:,} files were selected; one review can be about {MOST_FILES:,}. Name fewer "
            "folders, review only changes, or leave files out in .signoffignore"
        )


def _is_renamed(change: ChangedFile) -> bool:
    return change.path != change.old_path and not change.added and coverage.is_utf8(change.old_path)


def _base_texts(
    repository: Repository, commit: str, changes: Sequence[ChangedFile]
) -> dict[str, str]:
    old = repository.texts(commit, [each.old_path for each in changes])
    texts: dict[str, str] = {}
    for each in changes:
        before = coverage.decoded(old.get(each.old_path, b""))
        texts[each.path] = before if isinstance(before, str) and not each.added else ""
    return texts


def _line_ends_as_in(present: str, old: str) -> str:
    """Returns an old text with the line ends that git gives it when it writes it to a file."""
    lines = present.count("\n")
    converted = lines and present.count("\r\n") == lines and "\r\n" not in old
    return old.replace("\n", "\r\n") if converted else old
