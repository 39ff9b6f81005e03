"""The file of a quality review, `qr-<phase>.json`: items, iteration, and what was found.

A model writes the file once; from then on it changes only here. Every change reads the file,
replaces it as a whole and holds a lock meanwhile. So reviewers may record results at the same
time, a process may be killed at any point, and nothing that was recorded is lost.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.core.one_line import one_line
from signoff.documents.control_characters import json_text
from signoff.documents.file_lock import file_lock
from signoff.documents.regular_files import read_regular, translate_write_errors
from signoff.errors import UnknownName, UnreadableFile, UsageError
from signoff.skills.qr.items import ItemStatus, QRItem
from signoff.skills.qr.judging import QRAction, QRVerdict, blockers, judge
from signoff.skills.types import QRStatus
from signoff.store.rundir.files import Disk

LARGEST = 16 * 1024 * 1024
"""Bytes of the largest file that is read; one with ten thousand long findings is smaller."""

PHASE = re.compile(r"[a-z0-9][a-z0-9-]*")
"""The name of a phase, which is part of a file name and of commands."""

LONGEST_ID = 100
LONGEST_FINDING = 2_000
"""Characters of a finding that identify a failure."""

FAILURES = "failures"
"""The key of the failures that the current iteration started with."""

ROUND = "round"
"""The key of the name of the round that began last; it is missing until one has begun."""


@dataclass(frozen=True)
class QRRecord:
    """The content of a file."""

    content: dict[str, Any]
    """As it is in the file, with entries that are not known here."""

    @property
    def iteration(self) -> int:
        """The current iteration, from 1."""
        return int(self.content.get("iteration", 1))

    @property
    def items(self) -> list[QRItem]:
        """The items in the order of the file."""
        return [QRItem.from_json(each) for each in self.content["items"]]

    def verdict(self, reported: str | None = None) -> QRVerdict:
        """Returns what the recorded items lead to."""
        return judge(self.items, self.iteration, reported)

    def due(self) -> dict[str, list[QRItem]]:
        """Returns the items that still have to be verified, by group."""
        groups: dict[str, list[QRItem]] = {}
        for item in blockers(self.items, self.iteration):
            if item.status is ItemStatus.TODO:
                groups.setdefault(item.group, []).append(item)
        return groups


@dataclass(frozen=True)
class Baseline:
    """What a run knows about a file from its last verdict, whatever was written to it since."""

    iteration: int
    passed: Collection[str]
    """The ids of the items that were verified and passed."""


def qr_file(state_dir: Path, phase: str) -> Path:
    """Returns the path of the file of a phase."""
    return state_dir / f"qr-{phase}.json"


def judge_file(path: str | Path, reported: str | None = None) -> QRVerdict:
    """Returns the verdict on the items in a file; a human decides about a file without any."""
    try:
        return read_record(Path(path)).verdict(reported)
    except UnreadableFile:
        return QRVerdict(QRStatus.FAIL, QRAction.ASK)


def record(
    path: str | Path,
    item_id: str,
    status: str,
    finding: str | None = None,
    *,
    group: str | None = None,
) -> QRItem:
    """Records what was found about an item; returns the item.

    A failure that is recorded again without a finding keeps the earlier one. With `group`, the
    item must belong to that group.
    """
    result = ItemStatus.read(status)
    if result is ItemStatus.TODO:
        raise UsageError(f"unknown status {str(status)!r:.80}: valid: PASS, FAIL")
    with _changing(Path(path)) as content:
        of_group = [
            (each.id, item)
            for each, item in zip(QRRecord(content).items, content["items"], strict=True)
            if group in (None, each.group)
        ]
        for name, item in of_group:
            if name == item_id:
                kept = item.get("finding") if result is ItemStatus.FAIL else None
                item |= {"status": result.value, "finding": finding or kept}
                return QRItem.from_json(item)
        raise UnknownName("item", item_id, [name for name, _ in of_group])


def begin_round(
    path: Path, *, work_changed: bool = False, name: str = "", known: Baseline | None = None
) -> QRRecord:
    """Makes due what has to be verified next, and returns the file as it is then.

    Once everything is verified, what failed is due again. That starts an iteration, but only if
    the failures are others than those the last one started with: repeating the same work must
    not make the review milder. With `work_changed`, failures are due at once, and a review that
    has passed is due again as a whole.

    A round with a name begins once: a process that was killed meanwhile calls this again. With
    `known`, the iteration and results that differ from it do not count. Without, passes in a file
    that no round has begun for do not: their author has verified nothing.
    """
    with _changing(path) as content:
        found = QRRecord(content)
        begun = bool(name) and content.get(ROUND) == name
        if known is None and ROUND not in content:
            known = Baseline(1, ())
        if known is not None:
            # Also if the round seems to have begun: the file may only say so. Nothing has been
            # verified in it yet, but it may have started an iteration.
            content["iteration"] = min(found.iteration, known.iteration + begun)
            _reset(content, {ItemStatus.PASS}, keep=known.passed)
        if begun:
            return found
        content[ROUND] = name or content.get(ROUND, "")
        due = found.due()
        failed = [item for item in found.items if item.status is ItemStatus.FAIL]
        if due and not work_changed:
            return found
        if blockers(failed, found.iteration):
            failures = [[item.id, one_line(item.finding or "", LONGEST_FINDING)] for item in failed]
            if failures != content.get(FAILURES):
                content |= {"iteration": found.iteration + 1, FAILURES: failures}
            _reset(content, {ItemStatus.FAIL})
        elif work_changed and not due:
            _reset(content, {ItemStatus.FAIL, ItemStatus.PASS})
        return found


def read_record(path: Path) -> QRRecord:
    """Returns the content of a file; raises `UnreadableFile` with what is wrong with it."""
    try:
        data = read_regular(path, LARGEST)
        if len(data) > LARGEST:
            raise UnreadableFile(f"{path} is larger than {LARGEST:,} bytes")
        content = json.loads(data.decode("utf-8-sig"))
    except OSError as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else error.strerror
        raise UnreadableFile(f"{path} {reason or error}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"{path} is not valid JSON: {error}") from error
    if problem := _problem(content):
        raise UnreadableFile(f"{path}: {problem}")
    return QRRecord(content)


@contextmanager
def _changing(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the content of a file, and replaces the file with what was made of it."""
    # Without a file there is nothing to lock, and no folder to put the lock into.
    read_record(path)
    with translate_write_errors(path), file_lock(path):
        content = read_record(path).content
        before = _encoded(content)
        yield content
        if (after := _encoded(content)) != before:
            Disk(path.parent).put(path, after)


def _encoded(content: Mapping[str, Any]) -> bytes:
    # Half of a pair of surrogates cannot be encoded, and its escape means the same in JSON.
    return f"{json_text(content, indent=2)}\n".encode(errors="backslashreplace")


def _reset(content: dict[str, Any], statuses: set[ItemStatus], keep: Collection[str] = ()) -> None:
    """Makes the blocking items with one of these statuses due, except those to keep."""
    found = QRRecord(content)
    ids = {each.id for each in blockers(found.items, found.iteration) if each.status in statuses}
    ids.difference_update(keep)
    for item in content["items"]:
        if str(item["id"]) in ids:
            item["status"] = ItemStatus.TODO.value


def _problem(content: Any) -> str:
    """Returns why a file cannot be used; empty if it can."""
    if not isinstance(content, dict):
        return "is not a JSON object"
    iteration = content.get("iteration", 1)
    if type(iteration) is not int or iteration < 1:
        return "'iteration' is not a number from 1"
    items = content.get("items")
    if not isinstance(items, list) or not items:
        # A review that has checked nothing must not pass.
        return "'items' is not a list with at least one item"
    problems = ((number, _item_problem(item)) for number, item in enumerate(items, 1))
    if found := next((f"item {number} {what}" for number, what in problems if what), ""):
        return found
    names = Counter(str(item["id"]) for item in items)
    repeated = next((name for name, count in names.items() if count > 1), None)
    return "" if repeated is None else f"more than one item has the id {repeated!r}"


def _item_problem(item: Any) -> str:
    if not isinstance(item, dict):
        return "is not an object"
    # The group may be left out.
    named = {"id": item.get("id"), "group_id": item.get("group_id") or "none"}
    problems = ((key, _name_problem(name)) for key, name in named.items())
    return next((f"has a name in {key!r} that {what}" for key, what in problems if what), "")


def _name_problem(name: object) -> str:
    """Returns why a name cannot be used in a command; empty if it can."""
    if type(name) is int:
        return ""
    if not isinstance(name, str) or not name.strip():
        return "is empty or not a text"
    if not name.isprintable() or len(name) > LONGEST_ID:
        return f"is not one line of at most {LONGEST_ID} visible characters"
    # A command would take it for an option.
    return "begins with '-'" if name.startswith("-") else ""
