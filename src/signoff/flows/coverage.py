"""What a flow's run has not read: files, and constraints that were not read against files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from signoff.flows.files.skipping import file_coverage
from signoff.review.coverage import NotRead, ReviewCoverage
from signoff.review.path_patterns import matches

SKIPPED, UNCHECKED = "skipped", "unchecked"
"""The parts of a run's state with files that are not read, and constraints that do not apply."""
EXECUTES = "it would execute the change"
"""Why a constraint is left out of a review whose rules come from before the change."""


def run_coverage(
    state: Mapping[str, Any], description: Mapping[str, Any], files: Collection[str]
) -> ReviewCoverage:
    """Returns what a run that has ended has not read; `files` are the paths of its artifact."""
    found = file_coverage(state.get(SKIPPED) or {})
    unchecked = [NotRead(f"constraint {name}", why) for name, why in _unchecked(state)]
    missed = _unread(state.get("readings") or {}, description.get("source") or {}, files)
    return ReviewCoverage((*unchecked, *found.left_out), (*found.missed, *missed))


def _unchecked(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    return sorted((state.get(UNCHECKED) or {}).items())


def _unread(
    readings: Mapping[str, Any], source: Mapping[str, Any], files: Collection[str]
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
