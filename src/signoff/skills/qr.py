"""Quality-review (QR) gates: checks recorded one by one, and a verdict that goes by the records.

A review is split into items once. Reviewers verify items and record the results in the file
`qr-<phase>.json` of the skill's state directory. What passes is decided by these records, never by
a reviewer's word. From top to bottom: the items, the verdict on them, the file, and the gate, which
is the step of a run that has all of it done.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from signoff.core.context import StepContext
from signoff.core.errors import UnknownName, UnreadableFile, UsageError
from signoff.core.one_line import one_line
from signoff.core.outcome import Outcome
from signoff.core.questions import Option
from signoff.core.requests import Answer, Choice
from signoff.core.severity import WORST
from signoff.core.severity import Severity as IssueSeverity
from signoff.core.step import HandlerFunction, Result, StepDef
from signoff.documents.control_characters import escape_controls, json_text
from signoff.documents.regular_files import file_lock, read_regular, translate_write_errors
from signoff.review.pure.blocking import BlockingTable, blocking_at, relaxing_table
from signoff.runtime.sub_agents import AgentRole, Dispatch
from signoff.skills.state import need_state_dir
from signoff.skills.types import QRStatus
from signoff.store.run_files import Disk


class Severity(StrEnum):
    """How much an item matters, the worst first."""

    MUST = "MUST"
    """Knowledge would be lost, or the damage could not be undone."""
    SHOULD = "SHOULD"
    """The work would be harder to maintain."""
    COULD = "COULD"
    """A tool or the next reader would fix it in passing."""

    @classmethod
    def read(cls, word: object) -> Severity:
        """Returns the severity that a word means; `SHOULD` if it is unknown."""
        text = str(word).strip()
        if text.upper() in cls.__members__:
            return cls[text.upper()]
        # Models also use the words of other reviews. Only words for the worst severity are
        # translated: a guess at any other one could make a failure stop blocking too early.
        worst = IssueSeverity.named(text) is WORST or text.lower() in _OTHER_WORDS_FOR_MUST
        return cls.MUST if worst else cls.SHOULD


_OTHER_WORDS_FOR_MUST = frozenset({"blocking", "fatal", "mandatory", "required"})
"""Besides those for the worst severity of a review. No word lowers a severity: a guess could let
a failure pass."""


class ItemStatus(StrEnum):
    """What is known about an item."""

    TODO = "TODO"
    PASS = "PASS"  # noqa: S105  # not a password
    FAIL = "FAIL"

    @classmethod
    def read(cls, word: object) -> ItemStatus:
        """Returns the status that a word names, in any case; `TODO` if it is unknown."""
        return cls.__members__.get(str(word).strip().upper(), cls.TODO)


@dataclass(frozen=True)
class QRItem:
    """One thing to check."""

    id: str
    check: str = ""
    """What has to be true."""
    scope: str = "*"
    """Where to look; `*` is everywhere."""
    status: ItemStatus = ItemStatus.TODO
    version: int = 1
    finding: str | None = None
    """What is wrong, if it failed."""
    parent_id: str | None = None
    """The item it was split off from."""
    group_id: str | None = None
    """Items of one group are verified by the same reviewer."""
    severity: Severity = Severity.SHOULD

    def __post_init__(self) -> None:
        """Reads the words for status and severity, whoever wrote them."""
        object.__setattr__(self, "status", ItemStatus.read(self.status))
        object.__setattr__(self, "severity", Severity.read(self.severity))

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> QRItem:
        """Returns an item from the entries of a file; what is missing or unknown has its default.

        A file that could not hold such an item is refused before: see `record_file`.
        """
        # Every entry is read leniently, because a whole review must not be lost to one odd value;
        # what decides about passing is `status` and `severity`, which fall back to the safe side.
        version = value.get("version")
        return cls(
            id=str(value.get("id", "")),
            check=_text(value.get("check")) or "",
            scope=_text(value.get("scope")) or "*",
            status=value.get("status", ItemStatus.TODO),
            version=version if isinstance(version, int) else 1,
            finding=_text(value.get("finding")),
            parent_id=_text(value.get("parent_id")),
            group_id=_text(value.get("group_id")),
            severity=value.get("severity", Severity.SHOULD),
        )

    @property
    def group(self) -> str:
        """The group it is verified in; an item without one is a group of its own."""
        return self.group_id or self.id


def _text(value: object) -> str | None:
    return str(value) if value is not None and value != "" else None


DEFAULT: BlockingTable[Severity] = relaxing_table(tuple(Severity))
"""Iterations 1 and 2 block on everything, 3 and 4 on MUST and SHOULD, later ones on MUST."""

ITERATION_LIMIT = 5
"""From this iteration on, a human decides about a failure instead of another try."""


class QRAction(StrEnum):
    """What to do about a verdict."""

    PROCEED = "proceed"
    REDO = "redo"
    """Fix what failed, then have it verified again."""
    VERIFY = "verify"
    """Verify what is not recorded; the work itself is not known to be wrong."""
    ASK = "ask"
    """Have a human decide."""


@dataclass(frozen=True)
class QRVerdict:
    """The result of a quality review."""

    status: QRStatus
    action: QRAction


def blocking(iteration: int, table: BlockingTable[Severity] = DEFAULT) -> frozenset[Severity]:
    """Returns the severities that block in an iteration."""
    return blocking_at(iteration, table)


def judge(
    items: Iterable[QRItem | Mapping[str, Any]],
    iteration: int,
    reported: str | None = None,
    table: BlockingTable[Severity] = DEFAULT,
) -> QRVerdict:
    """Returns the verdict on recorded items; what a reviewer reported never makes it a pass."""
    read = [each if isinstance(each, QRItem) else QRItem.from_json(each) for each in items]
    if any(item.status is ItemStatus.FAIL for item in blockers(read, iteration, table)):
        return _failure(QRAction.REDO, iteration)
    # A reviewer that reports a failure which no record explains has either forgotten to record it
    # or recorded something else. Neither may pass, so everything is verified again.
    failed = any(item.status is ItemStatus.FAIL for item in read)
    unrecorded = not failed and str(reported).strip().lower() == QRStatus.FAIL
    todo = any(item.status is ItemStatus.TODO for item in blockers(read, iteration, table))
    if todo or unrecorded:
        return _failure(QRAction.VERIFY, iteration)
    return QRVerdict(QRStatus.PASS, QRAction.PROCEED)


def blockers(
    items: Iterable[QRItem], iteration: int, table: BlockingTable[Severity] = DEFAULT
) -> list[QRItem]:
    """Returns the items that block in an iteration, whatever their status is."""
    severities = blocking(iteration, table)
    return [item for item in items if item.severity in severities]


def _failure(action: QRAction, iteration: int) -> QRVerdict:
    return QRVerdict(QRStatus.FAIL, QRAction.ASK if iteration >= ITERATION_LIMIT else action)


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
        # Only blocking items: a reviewer that is paid for the others could not change the verdict.
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
        # The list comes from the locked file and not from the caller, so a result for an item that
        # was renamed meanwhile is refused instead of being appended.
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
            # The failures themselves are compared and not their number: an author who fixes one
            # problem and causes another has changed something, one who changes nothing has not.
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
        # Nothing but a regular file is opened: a pipe in its place would make every reviewer hang.
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


SCRIPT = "signoff.skills.quality_review"

ROUNDS = 3
"""How often items are verified in one visit before a human decides about those without a result."""

LONGEST_SHOWN = 1_000
"""Characters of a finding that a human is shown; the file has all of it."""

REMOVED = "the item was removed from the file"

_ACCEPT = "accept"
_REDO, _VERIFY = QRAction.REDO.value, QRAction.VERIFY.value


@dataclass(frozen=True, kw_only=True)
class QRGate(Dispatch):
    """A handler that has a phase reviewed: OK if its items pass, FAIL if the work must be redone.

    The workflow needs `STATE_DIR` as an input. After a few tries a human decides, who is shown
    every finding.
    """

    phase: str
    """What is reviewed, such as `plan-design`; the items are in `qr-<phase>.json`."""
    agent: AgentRole | str = AgentRole.QUALITY_REVIEWER
    script: str = SCRIPT

    def __post_init__(self) -> None:
        """Completes the script with the phase, so that every surface shows the whole command."""
        super().__post_init__()
        if not PHASE.fullmatch(self.phase):
            raise ValueError(f"phase={self.phase!r} must be lowercase words joined by '-'")
        if self.free_form:
            raise ValueError("a quality review needs a verdict; free_form=True gives none")
        if self.for_each:
            raise ValueError("a quality review has its own items; leave out for_each")
        if len(self.script.split()) == 1:
            object.__setattr__(self, "script", f"{self.script} {_option('phase', self.phase)}")

    def function(self, step: StepDef) -> HandlerFunction:
        """Returns a function that has the phase reviewed and goes by what was recorded."""

        async def handler(ctx: StepContext) -> Result:
            path = qr_file(need_state_dir(ctx.workflow_params), self.phase)
            # The names identify rounds across crashes: the same visit of the same run counts in the
            # same order again, so a round that was begun before a kill is not begun twice.
            names = (f"{ctx.run}/{ctx.step_id}/{ctx.visit}/{number}" for number in count(1))
            verdict: dict[str, Any] = ctx.step_state.get(step.id) or {}
            while True:
                verdict = await self._review(step, ctx, path, names, verdict)
                if verdict["action"] == QRAction.PROCEED:
                    return Outcome.OK, {step.id: verdict}
                # The engine's own count of visits limits the loop, because the iteration in the
                # file grows only with other failures and could stay low for ever.
                if verdict["action"] == QRAction.REDO and ctx.visit < ITERATION_LIMIT:
                    return Outcome.FAIL, {step.id: verdict}
                answer = await ctx.wait(_decision(self.phase, verdict), key="decide")
                if answer.value != _VERIFY:
                    return _decided(step, verdict, answer)

        return handler

    async def _review(
        self,
        step: StepDef,
        ctx: StepContext,
        path: Path,
        names: Iterator[str],
        verdict: dict[str, Any],
    ) -> dict[str, Any]:
        """Has everything that is due verified; returns the verdict and what it rests on.

        `names` are those of the rounds, `verdict` is the one before.
        """
        for _ in range(ROUNDS):
            found = await _once(ctx, "round", partial(_begin, path, next(names), verdict))
            if found is None:
                await self._reviewer("items").function(step)(ctx)  # type: ignore[misc]  # is async
                found = await _once(ctx, "round", partial(_begin, path, next(names), {}))
            groups = found["groups"] if found is not None else []
            reports = await ctx.map(groups, self._verifier(step), key="verify", retries=1)
            failed = any(report["status"] == QRStatus.FAIL for report in reports)
            # A reported pass is left out on purpose: only records can make a review pass.
            reported = QRStatus.FAIL.value if failed else None
            verdict = await _once(ctx, "verdict", partial(_verdict, path, reported, found))
            if verdict["action"] != QRAction.VERIFY:
                break
        return verdict

    def _verifier(self, step: StepDef) -> Any:
        async def verify(ctx: StepContext, group: str) -> dict[str, Any]:
            returned = self._reviewer("group", group).function(step)(ctx)
            _, update = await returned  # type: ignore[misc]  # a dispatch is async
            report: dict[str, Any] = update[step.id]
            return report

        return verify

    def _reviewer(self, option: str, value: str = "") -> Dispatch:
        """Returns the dispatch of one sub-agent, which runs the script with one more option."""
        own = {each.name: getattr(self, each.name) for each in fields(Dispatch)}
        return Dispatch(**own | {"script": f"{self.script} {_option(option, value)}"})


def _option(name: str, value: str = "") -> str:
    return f"--{name} {shlex.quote(value)}" if value else f"--{name}"


async def _once(ctx: StepContext, key: str, call: Any) -> Any:
    """Calls a function that reads or changes the file, once: a resume gets its recorded result."""
    (result,) = await ctx.map([key], lambda _ctx, _key: call(), key=key)
    return result


def _begin(path: Path, name: str, last: Mapping[str, Any]) -> dict[str, Any] | None:
    """Begins a round; returns what is to be verified, or None if there are no usable items yet.

    Agents can write to the file, so the run goes by its own `last` verdict: only what was
    verified in this run has passed, and no item that it has seen is dropped or matters less.
    """
    passed = last.get("passed", {})
    known = Baseline(last.get("iteration", 1), passed)
    try:
        found = begin_round(path, work_changed=True, name=name, known=known)
    except UnreadableFile:
        return None
    items = {item.id: item.severity.value for item in found.items}
    failed = {each["id"]: each["severity"] for each in last.get("findings", ())}
    return {
        "groups": [*found.due()],
        "iteration": found.iteration,
        "items": {**items, **failed, **passed},
    }


def _verdict(path: Path, reported: str | None, begun: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the verdict as the run's state has it.

    The file has the results; what is checked, and in which iteration, is as the round began.
    """
    try:
        found = {item.id: item for item in read_record(path).items}
        if begun is None:
            raise UnreadableFile(f"{path} had no usable items when the round began")
    except UnreadableFile as error:
        ask = {"status": QRStatus.FAIL.value, "action": QRAction.ASK.value}
        return {**ask, "notes": str(error), "findings": []}
    # The severities as the round began win over those in the file, so a reviewer that edits the
    # file cannot make an item matter less; removed items come back as findings.
    severities = {**{item.id: item.severity for item in found.values()}, **begun["items"]}
    items = [
        replace(found.get(name) or QRItem(name, finding=REMOVED), severity=severity)
        for name, severity in severities.items()
    ]
    verdict = judge(items, begun["iteration"], reported)
    listed = [item for item in items if item.status is not ItemStatus.PASS]
    findings = [
        {
            "id": item.id,
            "severity": item.severity.value,
            "status": item.status.value,
            "check": item.check,
            "finding": item.finding or "",
        }
        for item in listed
    ]
    return {
        "status": verdict.status.value,
        "action": verdict.action.value,
        "notes": f"round {begun['iteration']}, {len(listed)} of {len(items)} items did not pass",
        "findings": findings,
        "iteration": begun["iteration"],
        "passed": {
            item.id: item.severity.value for item in items if item.status is ItemStatus.PASS
        },
    }


def _decision(phase: str, verdict: dict[str, Any]) -> Any:
    """Returns the request to a human, with every finding on a line of its own."""
    lines = [
        f"- {each['id']} ({each['severity']}, {each['status']}): "
        + escape_controls(one_line(each["finding"] or each["check"], LONGEST_SHOWN))
        for each in verdict["findings"]
    ]
    prompt = f"The quality review of {phase} did not pass: {verdict['notes']}."
    options = [Option(_REDO), Option(_VERIFY), Option(_ACCEPT)]
    return Choice("\n".join([prompt, *lines]), options)


def _decided(step: StepDef, verdict: dict[str, Any], answer: Answer) -> Result:
    decided = {**verdict, "decision": str(answer.value), "comment": answer.text}
    return (Outcome.OK if answer.value == _ACCEPT else Outcome.FAIL), {step.id: decided}
