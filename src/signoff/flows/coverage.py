"""What a flow's run has read, by whom, and what it has not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from signoff.core.words import FindingStatus
from signoff.documents.globs import matches
from signoff.flows.files.skipping import file_coverage
from signoff.flows.state import critiques_in, reading_key
from signoff.review.artifact import ArtifactVersion
from signoff.review.coverage import (
    ConstraintResult,
    NotRead,
    Reader,
    ReaderKind,
    ReviewCoverage,
)
from signoff.review.finding import Finding

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
    unchecked = [NotRead(f"constraint {name}", why) for name, why in _unchecked(state)]
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
) -> Iterator[NotRead]:
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
                yield NotRead(path or "the text", f"no finished review against {name}")


def _selects(step: Mapping[str, Any], constraint: str) -> bool:
    patterns = step.get("constraints")
    return patterns is None or any(fnmatchcase(constraint, each) for each in patterns)


def _path(key: str, constraint: str) -> str:
    """Returns the path in the key of a reading: `constraint/agent/path`."""
    return key.removeprefix(f"{constraint}/").partition("/")[2]
