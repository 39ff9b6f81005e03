"""Uses an approved response: hashes it, writes what it contains, and decides where it leads.

A review decides whether a session is finished. Its verdict is in a block:

    @@@REVIEW_META
    verdict: FAIL
    issues_total: 3
    issues_critical: 1
    missing_inputs: 0
    @@@

A verdict that is not clear counts for nothing: the user fixes the file instead.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from signoff.core.context import StepContext
from signoff.core.digest import text_digest
from signoff.core.errors import InvalidParams, UnreadableFile, UnsafePath
from signoff.core.outcome import Outcome
from signoff.core.step import Result
from signoff.profiles.code_files import format_code_files
from signoff.profiles.gate import Submission
from signoff.profiles.model import Artifact, ProcessingResult, WriteOp
from signoff.profiles.session import (
    PLAN_FILE,
    REVISION_ISSUES_FILE,
    ProfileError,
    Session,
    SessionState,
    code_folder,
    process_response,
    revision_issues_path,
)
from signoff.profiles.transitions import SessionCommand, WorkflowPhase, WorkflowStatus
from signoff.review.pure.reply_text import Material
from signoff.runtime.paths import LONGEST_PATH, check_path, fold_name

BEGIN = "@@@REVIEW_META"
END = "@@@"

_COUNTS = ("issues_total", "issues_critical", "missing_inputs")
_FIELDS = ("verdict", *_COUNTS)
_COUNT = re.compile(r"[0-9]{1,9}")


class ReviewVerdict(StrEnum):
    """What a review says about the code."""

    PASS = "PASS"  # noqa: S105  # not a password
    FAIL = "FAIL"


@dataclass(frozen=True)
class ReviewMeta:
    """The verdict of a review, with the counts that it is based on."""

    verdict: ReviewVerdict
    issues_total: int
    issues_critical: int
    missing_inputs: int
    """Files or facts that the reviewer would have needed."""

    @property
    def summary(self) -> str:
        """The verdict and its counts on one line."""
        return (
            f"{self.verdict} | issues={self.issues_total} (critical={self.issues_critical}) "
            f"| missing_inputs={self.missing_inputs}"
        )

    @property
    def contradiction(self) -> str:
        """Why the verdict cannot be true, given its counts; empty if it can."""
        issues = "issue" if self.issues_critical == 1 else "issues"
        critical = f"{self.issues_critical} critical {issues}"
        if self.issues_critical > self.issues_total:
            return f"{critical} of {self.issues_total} in total"
        if self.verdict is ReviewVerdict.PASS and self.issues_critical:
            return f"the verdict is PASS with {critical}"
        if self.verdict is ReviewVerdict.FAIL and not (self.issues_total or self.missing_inputs):
            return "the verdict is FAIL without an issue or a missing input"
        return ""


def parse_review_meta(text: str) -> ReviewMeta:
    """Returns what the first block of a review says; raises `ValueError` if it is not valid."""
    block = next(_blocks(text), None)
    if block is None:
        raise ValueError(f"the review has no {BEGIN} block")
    return _parse(block)


def check_review_meta(text: str, material: Material | None = None) -> ReviewMeta:
    """Returns the verdict of a review, if it can be relied on; raises `ValueError` if not.

    Unlike `parse_review_meta`, it refuses a verdict that its counts contradict and blocks that
    disagree, and it does not count a block that is quoted from the `material`, such as code
    that contains one.
    """
    blocks = [*_blocks(text)]
    if not blocks:
        raise ValueError(f"the review has no {BEGIN} block")
    # Code under review can contain such a block, perhaps put there on purpose. A block that the
    # material has as well is taken for a quotation.
    own = [block for block in blocks if material is None or not material.contains("\n".join(block))]
    if not own:
        raise ValueError(f"the {BEGIN} block of the review is quoted from what it reviews")
    found = [*map(_parse, own)]
    # Which of them counts would be a guess, and the guess would decide whether code is delivered.
    if len(set(found)) > 1:
        raise ValueError(f"the review has {len(own)} {BEGIN} blocks that disagree")
    if found[0].contradiction:
        raise ValueError(f"the verdict contradicts its counts: {found[0].contradiction}")
    return found[0]


def _blocks(text: str) -> Iterator[Sequence[str]]:
    """Yields the lines of each block, without the markers."""
    block: list[str] | None = None
    begin = 0
    for number, line in enumerate(text.split("\n"), start=1):
        word = line.strip().upper()
        if word == BEGIN and block is not None:
            break
        if word == BEGIN:
            block, begin = [], number
        elif word == END and block is not None:
            yield block
            block = None
        elif block is not None:
            block.append(line)
    if block is not None:
        raise ValueError(f"the {BEGIN} block of line {begin} is not closed by {END}")


def _parse(block: Sequence[str]) -> ReviewMeta:
    fields = _fields(block)
    missing = [name for name in _FIELDS if name not in fields]
    if missing:
        raise ValueError(f"the {BEGIN} block lacks: {', '.join(missing)}")
    return ReviewMeta(
        _verdict(fields["verdict"]), *(_count(name, fields[name]) for name in _COUNTS)
    )


def _fields(block: Sequence[str]) -> Mapping[str, str]:
    fields: dict[str, str] = {}
    for line in block:
        key, _, value = line.partition(":")
        name = key.strip().lower()
        if name not in _FIELDS:
            continue
        if name in fields:
            raise ValueError(f"the {BEGIN} block has two lines for {name}")
        fields[name] = value.strip()
    return fields


def _verdict(value: str) -> ReviewVerdict:
    try:
        return ReviewVerdict(value.upper())
    except ValueError:
        raise ValueError(f"verdict is {value[:40]!r}; write PASS or FAIL") from None


def _count(name: str, value: str) -> int:
    if not _COUNT.fullmatch(value):
        raise ValueError(f"{name} is {value[:40]!r}; write a whole number")
    return int(value)


_OVERRULING: Mapping[str, ReviewVerdict] = {
    SessionCommand.APPROVE_COMPLETE: ReviewVerdict.PASS,
    SessionCommand.APPROVE_REVISE: ReviewVerdict.FAIL,
}
"""What a human decides about a review, whatever its verdict is."""

_FAILED = frozenset({WorkflowStatus.FAILED, WorkflowStatus.ERROR})


class UnusableResponse(Exception):  # noqa: N818  # not an error of the program: the session waits
    """The response cannot be used as it is; nothing was written."""


@dataclass(frozen=True)
class ApprovedResponse:
    """An approved response, and what is done with it."""

    session: Session
    phase: WorkflowPhase
    ctx: StepContext
    submission: Submission
    files: dict[str, str | None]
    """Files that came with the response, apart from its text."""
    edited: bool = False
    """Whether a human changed the text, so that files in it replace those that came with it."""

    async def apply(self) -> Result:
        """Returns where the session goes and what it remembers; raises `UnusableResponse`."""
        if not self.submission.text.strip() and not self.files:
            raise UnusableResponse("the response is empty")
        match self.phase:
            case WorkflowPhase.PLAN:
                return await self._plan()
            case WorkflowPhase.REVIEW:
                return await self._review(self.submission.command)
            case _:
                return await self._code()

    async def _plan(self) -> Result:
        self._process(self._content)
        text = self.submission.text
        await self.ctx.write(PLAN_FILE, text)
        update = {"plan": text, "plan_hash": text_digest(text), "plan_approved": True}
        return Outcome.OK, update

    async def _review(self, command: str) -> Result:
        text = self.submission.text
        update: dict[str, Any] = {"review": text, "review_hash": text_digest(text)}
        try:
            verdict: ReviewVerdict | None = self._verdict()
        except UnusableResponse:
            if command == SessionCommand.APPROVE:
                raise
            verdict = None
        # The human's command wins over the verdict, and the state keeps both, so an override can
        # never look like a review that passed.
        decided = _OVERRULING.get(command, verdict)
        answer = self.submission.answer
        reason = answer.text if answer is not None else ""
        if decided is not verdict:
            override = {
                "round": self.ctx.iteration,
                "verdict": verdict,
                "decided": decided,
                "by": answer.by if answer is not None else "",
                "reason": reason,
            }
            update["overrides"] = [*self.ctx.step_state.get("overrides", ()), override]
        if command in _OVERRULING:
            update["feedback"] = reason if decided is ReviewVerdict.FAIL else ""
        passed = decided is ReviewVerdict.PASS
        # An override does not change what the review says.
        update |= {"verdict": verdict or "", "review_approved": passed}
        if passed:
            await self._check_code()
        return (Outcome.OK if passed else Outcome.FAIL), update

    async def _check_code(self) -> None:
        """Compares the approved code with its files; raises `UnusableResponse` if any was changed.

        Missing files are written again, like everything that is missing from a run's folder.
        """
        state, iteration = SessionState(self.ctx), self.ctx.iteration
        folder = code_folder(iteration)
        approved = {f"{folder}/{path}": text for path, text in state.code.items()}
        found = await asyncio.gather(*(self._file(path) for path in approved))
        digests = dict(zip(approved, found, strict=True))
        hashes = {each["path"]: each["sha256"] for each in state.artifacts}
        changed = [path for path, own in digests.items() if own and own != hashes.get(path)]
        if changed:
            # Nobody has reviewed the change, and overwriting it would lose it.
            raise UnusableResponse(
                f"changed since it was approved: {', '.join(changed)}. Delete these files to have "
                "the approved version written again, or have the code revised"
            )
        lost = [path for path, own in digests.items() if not own]
        await asyncio.gather(*(self.ctx.write(path, approved[path]) for path in lost))

    async def _file(self, path: str) -> str:
        """Returns the digest of a file; empty if there is none."""
        try:
            found = await self.ctx.read(path, key=f"check:{path}", missing_ok=True)
        except UnreadableFile:
            # It is there, but it is nothing that a session writes.
            return "unreadable"
        return found.digest if found is not None else ""

    def _verdict(self) -> ReviewVerdict:
        result, state = self._process(self._content), SessionState(self.ctx)
        own = result.metadata.get("verdict")
        if own is not None:
            try:
                return ReviewVerdict(str(getattr(own, "value", own)).strip().upper())
            except ValueError:
                valid = " or ".join(ReviewVerdict)
                raise UnusableResponse(f"the verdict is {own!r}; it must be {valid}") from None
        try:
            meta = check_review_meta(self._content, Material(*state.code.values()))
        except ValueError as error:
            raise UnusableResponse(str(error)) from error
        return meta.verdict

    async def _code(self) -> Result:
        """Writes the code of this round; files that a revision leaves out are kept."""
        state, iteration = SessionState(self.ctx), self.ctx.iteration
        code, notes = await self._files(state.code)
        folder = code_folder(iteration)
        texts = {f"{folder}/{path}": text for path, text in sorted(code.items())}
        writes = {**texts, **notes}
        await asyncio.gather(*(self.ctx.write(path, text) for path, text in writes.items()))
        created = self.ctx.now()
        artifacts = [
            Artifact(
                path=path,
                phase=self.phase,
                iteration=iteration,
                sha256=text_digest(text),
                created_at=created,
            ).model_dump(mode="json")
            for path, text in texts.items()
        ]
        return Outcome.OK, {
            "code": code,
            "artifacts": [*state.artifacts, *artifacts],
            "revision_notes": await self._notes(notes),
        }

    async def _notes(self, notes: dict[str, str]) -> str:
        """Returns the reviser's notes, which may have been written as a file of their own."""
        if notes or self.phase is not WorkflowPhase.REVISE:
            return "".join(notes.values())
        path = revision_issues_path(self.ctx.iteration)
        found = await self.ctx.read(path, missing_ok=True)
        return found.text if found is not None else ""

    async def _files(self, code: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Returns the code with the files of the response, and the reviser's notes by path."""
        found = await self._writes()
        try:
            files = check_writes(found)
            # Files that the revision keeps must not clash with new ones either.
            kept = [WriteOp(path=p, content=t) for p, t in code.items() if p not in files]
            check_writes([*found, *kept])
        except ValueError as error:
            raise UnusableResponse(str(error)) from error
        # The reviser's notes are about the code and no part of it; as a file of the project they
        # would be delivered.
        notes = {}
        if self.phase is WorkflowPhase.REVISE and REVISION_ISSUES_FILE in files:
            path = revision_issues_path(self.ctx.iteration)
            notes[path] = files.pop(REVISION_ISSUES_FILE)
        if not files:
            raise UnusableResponse(f"the response contains only {REVISION_ISSUES_FILE}")
        return {**code, **files}, notes

    async def _writes(self) -> list[WriteOp]:
        """Returns the files of the response: those in its text, or those that came with it."""
        usable, found = True, list[WriteOp]()
        try:
            plan = self._process(self._content).write_plan
            found = list(plan.writes) if plan is not None else []
        except UnusableResponse:
            # The text that comes with files may be no more than "done".
            if not self.files or self.edited:
                raise
            usable = False
        if not self.files or (self.edited and found):
            return found
        texts = {path: await self._text(path, text) for path, text in self.files.items()}
        if not usable:
            self._process(format_code_files(texts))
        return [WriteOp(path=path, content=text) for path, text in texts.items()]

    async def _text(self, path: str, text: str | None) -> str:
        found = await provided_text(self.ctx, path, text)
        if found is None:
            folder = code_folder(self.ctx.iteration)
            raise UnusableResponse(
                f"the provider did not return the text of {path!r}, and there is no such file "
                f"in {folder}/"
            )
        return found

    def _process(self, content: str) -> ProcessingResult:
        try:
            result = process_response(self.session.profile, self.phase, content)
        except (ProfileError, InvalidParams) as error:
            raise UnusableResponse(str(error)) from error
        for message in result.messages:
            self.ctx.progress(message)
        if result.status in _FAILED or result.error_message:
            what = result.error_message or f"the profile reports {result.status.value}"
            raise UnusableResponse(what)
        return result

    @property
    def _content(self) -> str:
        """The text without the mark that some editors put at the beginning of a file."""
        return self.submission.text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")


async def provided_text(ctx: StepContext, path: str, text: str | None) -> str | None:
    """Returns the text of a provider's file, which the provider may have written itself.

    None if there is no such file.
    """
    if text is not None:
        return text
    try:
        safe = check_artifact_path(path)
    except ValueError:
        return None
    read = await ctx.read(f"{code_folder(ctx.iteration)}/{safe}", missing_ok=True)
    return read.text if read is not None else None


LONGEST = LONGEST_PATH - 100
"""Bytes of a path: the folder of the round comes before it."""


def check_artifact_path(path: str) -> str:
    """Returns a path with `/` between its names; raises `ValueError` with the reason.

    It has to be a relative path of plain, visible names.
    """
    # Models write paths for the system that they imagine; both kinds of slash are checked as one.
    normalized = path.replace("\\", "/")
    try:
        check_path(normalized)
    except UnsafePath as error:
        raise ValueError(str(error)) from error
    # In bytes, as file systems count: a short name in another script may still be too long.
    if len(normalized.encode()) > LONGEST:
        raise ValueError(f"the path {path[:77]!r}... is longer than {LONGEST} bytes")
    return normalized


def check_writes(writes: Sequence[WriteOp]) -> dict[str, str]:
    """Returns the text of each file by its path; raises `ValueError` with every problem.

    There has to be a file, and no two of them may have one name, not even on systems that
    compare names without case.
    """
    if not writes:
        raise ValueError("the response contains no file")
    texts: dict[str, str] = {}
    paths: list[str] = []
    problems: list[str] = []
    for write in writes:
        try:
            path = check_artifact_path(write.path)
        except ValueError as error:
            problems.append(str(error))
        else:
            texts[path] = write.content
            paths.append(path)
    # Two names that differ only in case are one file on many systems, where the second would
    # overwrite the first. Sorted, a file stands right before what would be in it as a folder.
    folded = sorted((f"{fold_name(path)}/", path) for path in paths)
    problems += [
        f"the files {one!r} and {other!r} cannot both be written"
        for (first, one), (second, other) in pairwise(folded)
        if second.startswith(first)
    ]
    if problems:
        raise ValueError("; ".join(problems))
    return texts
