"""What a flow's run has read, by whom, and what it has not read, and why.

Files in folders are left out if they are no use to a review: no human wrote them, or critics can't
read them. Views of a run import this module to say what was not read. So it knows nothing of git,
of flow files and of how files are chosen: `show` would otherwise wait for all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from signoff.core.errors import UsageError
from signoff.core.words import FindingStatus
from signoff.documents.globs import matches
from signoff.documents.regular_files import NotRegular, read_regular
from signoff.review.flow.state import critiques_in, reading_key
from signoff.review.pure.artifact import ArtifactVersion
from signoff.review.pure.coverage import (
    ConstraintResult,
    CoverageGap,
    Reader,
    ReaderKind,
    ReviewCoverage,
)
from signoff.review.pure.finding import Finding

SKIPPED, UNCHECKED = "skipped", "unchecked"
"""The parts of a run's state with files that are not read, and constraints that do not apply."""
EXECUTES = "it would execute the change"
"""Why a constraint is left out of a review whose rules come from before the change."""


def run_coverage(
    state: Mapping[str, Any],
    description: Mapping[str, Any],
    files: Collection[str],
    items: Iterable[Any] = (),
) -> ReviewCoverage:
    """Returns what a run that has ended has not read; `files` are the paths of its artifact.

    `items` are the results of reviews in a step that was cut off: they were made and paid for,
    although the step has not stored them.
    """
    found = file_coverage(state.get(SKIPPED) or {})
    unchecked = [CoverageGap(f"constraint {name}", why) for name, why in _unchecked(state)]
    read = {*(state.get("readings") or {}), *(key for item in items for key in _keys_in(item))}
    missed = _unread(read, description.get("source") or {}, files)
    return ReviewCoverage((*unchecked, *found.left_out), (*found.missed, *missed))


def constraint_results(
    state: Mapping[str, Any],
    content: ArtifactVersion,
    findings: Iterable[Finding],
    names: Iterable[str] = (),
) -> tuple[ConstraintResult, ...]:
    """Returns who has read a version against each constraint, and with which result.

    `names` are those of constraints that may not have been read at all.
    """
    # Fixed findings are left out: a constraint whose findings were all fixed is one that passed.
    counts: dict[str, dict[FindingStatus, Counter[str]]] = {}
    for each in sorted(findings, key=lambda finding: finding.severity.rank):
        if each.status is not FindingStatus.FIXED:
            by_status = counts.setdefault(each.constraint, {})
            by_status.setdefault(each.status, Counter())[each.severity.value] += 1
    read_by, readings = state.get("read_by") or {}, state.get("readings") or {}
    results = []
    for name in dict.fromkeys([*names, *read_by]):
        agents, found = read_by.get(name) or {}, counts.get(name) or {}
        readers = [_reader(name, each, agents[each], readings, content) for each in agents]
        by_status = {status: found[status] for status in FindingStatus if status in found}
        changed = _changed(name, agents, readings, content)
        results.append(ConstraintResult(name, tuple(readers), by_status, changed))
    return tuple(results)


def _reader(
    constraint: str,
    agent: str,
    about: Mapping[str, Any],
    readings: Mapping[str, str],
    content: ArtifactVersion,
) -> Reader:
    humans: Mapping[str, str] = about.get("humans") or {}
    usable = any(
        path not in humans and reading_key(constraint, agent, path) in readings
        for path in content.files
    )
    return Reader(
        str(about["name"]), ReaderKind(about["kind"]), usable, tuple(dict.fromkeys(humans.values()))
    )


def _changed(
    constraint: str, agents: Iterable[str], readings: Mapping[str, str], content: ArtifactVersion
) -> int:
    """Returns how many files were read against a constraint, but not as they are now."""
    changed = 0
    for path in content.files:
        digests = [readings.get(reading_key(constraint, agent, path)) for agent in agents]
        changed += any(digests) and content.digest(path) not in digests
    return changed


def _unchecked(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    return sorted((state.get(UNCHECKED) or {}).items())


def _keys_in(result: Any) -> Iterator[str]:
    for each in critiques_in(result):
        for path in each.get("paths") or ("",):
            yield reading_key(each["constraint_id"], each["reviewer"], path)


def _unread(
    readings: Collection[str], source: Mapping[str, Any], files: Collection[str]
) -> Iterator[CoverageGap]:
    """Yields each file and constraint of which no review was finished."""
    steps = (source.get("flow") or {}).get("workflow") or ()
    critics = [each for each in steps if each.get("step") == "critique"]
    for constraint in source.get("constraints") or ():
        name, patterns = str(constraint["id"]), constraint.get("paths") or ()
        if not any(_selects(step, name) for step in critics):
            continue
        read = {_path(key, name) for key in readings if key.startswith(f"{name}/")}
        for path in files:
            if path not in read and (not (path and patterns) or matches(patterns, path)):
                yield CoverageGap(path or "the text", f"no finished review against {name}")


def _selects(step: Mapping[str, Any], constraint: str) -> bool:
    patterns = step.get("constraints")
    return patterns is None or any(fnmatchcase(constraint, each) for each in patterns)


def _path(key: str, constraint: str) -> str:
    """Returns the path in the key of a reading: `constraint/agent/path`."""
    return key.removeprefix(f"{constraint}/").partition("/")[2]


IGNORE_FILE = ".signoffignore"
LARGEST_BYTES = 256_000
"""A larger file is hardly written by hand, and fills a prompt by itself."""
_LOOKED_AT = 8_000
"""Bytes in which a binary file shows itself, as in git."""
_HEAD = 600
"""Characters at the start of a file in which it says that it was generated."""

_LOCKS = frozenset(
    {
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"),
        *("poetry.lock", "uv.lock", "pdm.lock", "pipfile.lock", "cargo.lock", "go.sum"),
        *("composer.lock", "gemfile.lock", "mix.lock", "flake.lock", "packages.lock.json"),
    }
)
_VENDORED = frozenset(
    {"vendor", "vendored", "third_party", "node_modules", "bower_components", "site-packages"}
)
_BUILT = frozenset({"__pycache__", "dist", "build", "target", "venv", ".venv", ".git", ".signoff"})
"""Folders that are left out where there is no git to say so."""
_OWN = frozenset({"__pycache__", ".git", ".signoff"})
"""Folders that hold nothing a review could be expected to read."""
_GENERATED = (
    *(".min.js", ".min.css", ".map", "_pb2.py", "_pb2_grpc.py", ".pb.go", ".g.dart"),
    *(".generated.ts", ".designer.cs", ".sarif"),
)
_GENERATED_MARKS = ("@generated", "do not edit", "automatically generated", "autogenerated")
_OWN_MARKS = ('"e": "run_started"', '"service.name","value":{"stringvalue":"signoff"')
"""What our own files say whose format has no place for a comment: events and traces."""


class Skip(Enum):
    """Why a file is left out."""

    IGNORED = "ignored"
    """By `.signoffignore`."""
    HIDDEN = "hidden"
    VENDORED = "vendored"
    GENERATED = "generated"
    LOCK = "lock file"
    BINARY = "binary"
    EMPTY = "empty"
    LINK = "link"
    FOLDER = "another repository"
    """A folder where git lists a file: a submodule, or a repository that is not a part of this."""
    GONE = "missing"
    BUILT = "build folder"
    NO_FILES = "ignored by git, or empty"
    """A whole folder: git does not list what it ignores."""
    UNRULED = "no constraint applies"
    UNCOVERED = "no constraint covers it"
    """Of a file that the user named: to leave it out would pass for a review of it."""
    LARGE = "too large"
    ENCODING = "not UTF-8"
    NAME = "named in another encoding"
    UNREADABLE = "unreadable"
    ABSENT = "not checked out"
    """Of a change: git has the file, and the disk does not, as in a sparse checkout."""
    REPLACED = "no text any more"
    """Of a change: what was a text is a link now, or has bytes that only binary files have."""
    FILTERED = "filtered by git"
    """Of a change: git stores another text, which only a program of the repository can tell."""

    @property
    def by_rule(self) -> bool:
        """Whether a rule leaves the file out; without one, a review of it is missing."""
        return self not in _MISSED


_MISSED = frozenset(
    {
        *(Skip.LARGE, Skip.ENCODING, Skip.NAME, Skip.UNREADABLE, Skip.FILTERED),
        *(Skip.UNCOVERED, Skip.ABSENT, Skip.REPLACED),
    }
)


def file_coverage(skipped: Mapping[str, str]) -> ReviewCoverage:
    """Returns which files rules leave out, and which are missing from a review."""
    entries = [(Skip(why), CoverageGap(path, why)) for path, why in sorted(skipped.items())]
    return ReviewCoverage(
        tuple(entry for why, entry in entries if why.by_rule),
        tuple(entry for why, entry in entries if not why.by_rule),
    )


def skip_by_name(path: str) -> Skip | None:
    """Returns why a file is left out, as far as its path tells."""
    parts = PurePosixPath(path).parts
    if any(part.startswith(".") for part in parts):
        return Skip.HIDDEN
    if _VENDORED.intersection(parts[:-1]):
        return Skip.VENDORED
    name = parts[-1].lower()
    if name in _LOCKS:
        return Skip.LOCK
    if name.endswith(_GENERATED):
        return Skip.GENERATED
    return None if is_utf8(path) else Skip.NAME


def is_utf8(path: str) -> bool:
    """Whether a path is UTF-8, as everything that is recorded has to be."""
    # Python reads the other bytes of a name as half surrogate pairs.
    return not any("\ud800" <= sign <= "\udfff" for sign in path)


def is_built(name: str) -> bool:
    """Whether a folder holds what programs made."""
    return name in _BUILT or name in _VENDORED


def skip_folder(name: str) -> Skip | None:
    """Returns why a folder is named as left out; None for those that nobody misses."""
    if name in _VENDORED:
        return Skip.VENDORED
    return Skip.BUILT if name in _BUILT - _OWN else None


def says_generated(text: str) -> bool:
    """Whether a file says at its start that it was generated."""
    head = text[:_HEAD].lower()
    if any(mark in head for mark in _OWN_MARKS):
        return True
    return any(mark in head for mark in _GENERATED_MARKS) and "generated" in head


def ignore_patterns(root: Path) -> tuple[str, ...]:
    """Returns the lines of the project's `.signoffignore`."""
    try:
        return tuple((root / IGNORE_FILE).read_text("utf-8").splitlines())
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{IGNORE_FILE} cannot be read: {error}") from error


def is_ignored(patterns: tuple[str, ...], path: str) -> bool:
    """Whether `.signoffignore` leaves a file out."""
    return bool(patterns) and matches(patterns, path)


def read_content(path: Path, *, generated: bool = False) -> str | Skip:
    """Returns the text of a file, or why it has none.

    A file that says it is generated has none unless `generated`.
    """
    try:
        content = read_regular(path, LARGEST_BYTES)
    except FileNotFoundError:
        return Skip.GONE
    except IsADirectoryError:
        return Skip.FOLDER
    except NotRegular:
        return Skip.FOLDER if path.is_dir() and not path.is_symlink() else Skip.LINK
    except OSError:
        return Skip.UNREADABLE
    text = decoded(content)
    # A rule comes before what cannot be read: a large generated file is a generated one.
    if generated or not (isinstance(text, str) or text is Skip.LARGE):
        return text
    head = content[:_LOOKED_AT].decode("utf-8", "replace")
    return Skip.GENERATED if says_generated(head) else text


def decoded(content: bytes) -> str | Skip:
    """Returns the text of a file's content, or why it has none."""
    # The test of git: a text has no such byte, and nearly every binary format has one early.
    if b"\0" in content[:_LOOKED_AT]:
        return Skip.BINARY
    if len(content) > LARGEST_BYTES:
        return Skip.LARGE
    if not content.strip():
        return Skip.EMPTY
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return Skip.ENCODING
