"""Chooses the files of a review: those that are named, those in folders, or those of a change.

A file that is named is reviewed whatever it is called. In folders, what git ignores, hidden,
generated, vendored and lock files and those of `.signoffignore` are left out and named; so are
files that are binary or empty. A file that is too large or unreadable is missing from the review.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from signoff.documents.globs import matches
from signoff.errors import UsageError
from signoff.flows.files.git import ChangedFile, Repository
from signoff.flows.files.skipping import (
    Skip,
    decoded,
    file_coverage,
    ignore_patterns,
    is_built,
    is_ignored,
    is_utf8,
    read_content,
    says_generated,
    skip_by_name,
    skip_folder,
)
from signoff.review.coverage import ReviewCoverage

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
        return file_coverage(self.skipped)


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
                skipped.setdefault(f"{folder}/", Skip.NO_FILES.value)
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
        # A change could call its own files generated; then only what they were before counts.
        doubted = set() if self.trusted is None else _not_generated(base)
        files = dict(self._read(wanted, doubted | named, skipped, refuse=False))
        for path in repository.filtered([*files]):
            del files[path]
            skipped[path] = Skip.FILTERED.value
        chosen = [each for each in present if each.path in files]
        return Selection(
            files,
            skipped,
            base={
                path: _line_ends_as_in(files[path], base[path]) for path in base if path in files
            },
            renamed={e.path: e.old_path for e in chosen if _is_renamed(e)},
            deleted=tuple(each.path for each in changes if each.deleted and is_utf8(each.path)),
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
                if (why := skip_folder(name)) is not None:
                    skipped[f"{_shown((below / name).as_posix())}/"] = why.value
            folders[:] = sorted(name for name in folders if not is_built(name))
            yield from ((below / name).as_posix() for name in sorted(names))

    def _worth_reading(
        self, repository: Repository | None, paths: Sequence[str], skipped: Skipped
    ) -> list[str]:
        patterns = ignore_patterns(self.trusted or self.root)
        known = repository is not None and paths and self.trusted is None
        marked = repository.marked(paths) if repository is not None and known else {}
        wanted = []
        for path in paths:
            why = Skip.IGNORED if is_ignored(patterns, path) else skip_by_name(path)
            why = why or (Skip(marked[path]) if path in marked else None)
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
            content: str | Skip = Skip.NAME
            if is_utf8(path):
                content = read_content(self.root / path, generated=path in named)
            if isinstance(content, str):
                yield path, content
                continue
            if refuse and path in named and content is not Skip.EMPTY:
                raise UsageError(f"{path} cannot be reviewed: {_PROBLEMS[content]}")
            skipped[_shown(path)] = content.value


def piped_text(content: bytes) -> Selection:
    """Returns standard input as the file of a review; raises `UsageError` if it is no text."""
    text = decoded(content)
    if text is Skip.EMPTY:
        return Selection({}, {"stdin": text.value})
    if isinstance(text, Skip):
        raise UsageError(f"standard input cannot be reviewed: {_PROBLEMS[text]}")
    return Selection({"stdin": text})


_PROBLEMS = {
    Skip.BINARY: "it is not UTF-8 text",
    Skip.ENCODING: "it is not UTF-8 text",
    Skip.UNREADABLE: "it cannot be opened; check its permissions",
    Skip.LARGE: "it is larger than 256,000 bytes; split it, or review a part of it",
    Skip.LINK: "it is a link or no regular file; name the file itself",
    Skip.GONE: "it does not exist any more",
    Skip.NAME: "its name is not UTF-8; rename it",
}


def _shown(path: str) -> str:
    """Returns a path as it can be recorded; other bytes of a name are escaped."""
    return path if is_utf8(path) else os.fsencode(path).decode("utf-8", "backslashreplace")


def _check_number(files: int) -> None:
    if files > MOST_FILES:
        raise UsageError(
            f"{files:,} files were selected; one review can be about {MOST_FILES:,}. Name fewer "
            "folders, review only changes, or leave files out in .signoffignore"
        )


def _is_renamed(change: ChangedFile) -> bool:
    return change.path != change.old_path and not change.added and is_utf8(change.old_path)


def _base_texts(
    repository: Repository, commit: str, changes: Sequence[ChangedFile]
) -> dict[str, str]:
    old = repository.texts(commit, [each.old_path for each in changes])
    texts: dict[str, str] = {}
    for each in changes:
        before = decoded(old.get(each.old_path, b""))
        texts[each.path] = before if isinstance(before, str) and not each.added else ""
    return texts


def _line_ends_as_in(present: str, old: str) -> str:
    """Returns an old text with the line ends that git gives it when it writes it to a file."""
    lines = present.count("\n")
    converted = lines and present.count("\r\n") == lines and "\r\n" not in old
    return old.replace("\n", "\r\n") if converted else old


def _not_generated(base: Mapping[str, str]) -> set[str]:
    return {path for path, text in base.items() if not says_generated(text)}
