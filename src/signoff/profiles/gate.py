"""The gate of a stage: an approver judges the file, and a human decides where none can."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from signoff.core.context import StepContext
from signoff.core.effects import ProductPrompt
from signoff.core.errors import AgentError, AgentQuota
from signoff.core.requests import Answer, Approval
from signoff.profiles.model import ApprovalResult
from signoff.profiles.providers import FsAbility, by_hand, judge_prompt, read_approval
from signoff.profiles.session import MANUAL, SKIP, Note, Session, SessionState, StageRules, step_id
from signoff.profiles.transitions import (
    ApprovalDecision,
    SessionCommand,
    TransitionTable,
    WorkflowPhase,
    WorkflowStage,
)

GateMaterial = Callable[[], Awaitable[dict[str, str | None]]]
"""Returns texts by path that an approver reads along with the file it judges."""

NextVersion = Callable[[Note, str], Awaitable["Submission | Rejection | None"]]
"""Gets another version of a text that the approver rejected; None if there is no other."""

_DECIDE = "Approve {path}? You may edit it first."
_REWRITTEN = f"The file has been replaced by that version. {_DECIDE}"
HAND_IN = "Save the response as {path}, then approve."
"""What a waiting session asks its user."""

_APPROVALS = frozenset(
    {SessionCommand.APPROVE, SessionCommand.APPROVE_COMPLETE, SessionCommand.APPROVE_REVISE}
)


class _ApproverFailed(Exception):  # noqa: N818  # never leaves this module
    """The approver did not decide; it is asked again when a human has looked."""


@dataclass(frozen=True)
class Submission:
    """The text of a file, and the human's approval of it if there is one."""

    text: str
    answer: Answer | None = None
    note: Note = field(default_factory=Note)
    """Why the session waited for that approval."""

    @property
    def command(self) -> str:
        """Which approval it is; a human may overrule the verdict of a review."""
        extras = self.answer.extras if self.answer is not None else {}
        return str(extras.get("command", SessionCommand.APPROVE))


@dataclass(frozen=True)
class Rejection:
    """A human rejected the file."""

    note: Note
    """The human's feedback, and what the session's approver decided before."""


@dataclass(frozen=True)
class StageGate:
    """The gate of one stage, during one visit."""

    session: Session
    phase: WorkflowPhase
    stage: WorkflowStage
    ctx: StepContext
    path: str
    """The file that is judged."""
    material: GateMaterial

    @property
    def rules(self) -> StageRules:
        """How this stage is approved."""
        return self.session.rules[step_id(self.phase, self.stage)]

    async def judge(
        self, submission: Submission, next_version: NextVersion, count: int = 0
    ) -> Submission | Rejection:
        """Returns once the approver or, where it does not approve, a human has decided.

        `count` is how often the approver has rejected the file at this stage.
        """
        if self.rules.approver == SKIP:
            return submission
        if self.rules.approver == MANUAL:
            return await self.wait(Note())
        return await self._approver_judges(submission, next_version, count)

    async def _approver_judges(
        self, submission: Submission, next_version: NextVersion, count: int
    ) -> Submission | Rejection:
        # Every turn of this loop has asked the approver once more, and `max_retries` bounds how
        # often the provider is asked again in between.
        while True:
            evaluated = await self._evaluated(submission, count)
            if isinstance(evaluated, Rejection):
                return evaluated
            submission, result = evaluated
            if result.decision is ApprovalDecision.APPROVED:
                return submission
            if result.decision is ApprovalDecision.PENDING:
                return await self.wait(replace(_note(result), retry_count=count))
            count += 1
            rejected = f"Approval rejected after {count} attempts"
            note = replace(_note(result), last_error=rejected, retry_count=count)
            # A rewritten prompt is shown to a human and not judged again: the approver would only
            # be asked about its own words.
            if await self._rewritten(result):
                return await self.wait(note, _REWRITTEN)
            retry = count <= self.rules.max_retries
            newer = await next_version(note, submission.text) if retry else None
            if newer is None:
                return await self.wait(note)
            if isinstance(newer, Rejection):
                return newer
            submission = newer

    async def _evaluated(
        self, submission: Submission, count: int
    ) -> tuple[Submission, ApprovalResult] | Rejection:
        """Returns the approver's decision, and the text it is about."""
        while True:
            try:
                return submission, await self._evaluate(submission.text)
            except _ApproverFailed as error:
                # The next approval is not the decision: it has the approver asked again.
                decided = await self.wait(Note(last_error=str(error), retry_count=count))
            if isinstance(decided, Rejection):
                return decided
            submission = decided

    async def wait(self, note: Note, question: str = _DECIDE) -> Submission | Rejection:
        """Returns once a human has decided about the file, which may be edited first."""
        while True:
            answer = await self._ask_human(note, question)
            if not answer.approved:
                return Rejection(replace(note, last_error="", approval_feedback=answer.text))
            # The text is that of the file when it was approved, which the answer has recorded; the
            # file may have changed since.
            submission = Submission(answer.content or "", answer, note)
            problem = self._problem(submission.command, answer.extras.get("fs_ability"))
            if not problem:
                return submission
            note = replace(note, last_error=problem)

    def _problem(self, command: str, fs_ability: str | None) -> str:
        """Returns why an approval cannot be used, whatever surface sent it; empty if it can."""
        row = TransitionTable.get(self.phase, self.stage, command)
        if row is None or command not in _APPROVALS:
            return f"{command} is not possible at the {self.phase.value} {self.stage.value}"
        if fs_ability is not None and fs_ability not in tuple(FsAbility):
            return f"unknown fs_ability {fs_ability!r} (valid: {', '.join(FsAbility)})"
        return ""

    async def _ask_human(self, note: Note, question: str) -> Answer:
        about = {"phase": self.phase.value, "stage": self.stage.value, **note.to_json()}
        lines = [*_reasons(note), question.format(path=self.path)]
        text = ProductPrompt("\n".join(lines), [self.path])
        request = Approval(
            text, path=self.path, edits="accept", about=about, presence=self.rules.presence
        )
        return await self.ctx.wait(request, key="decide")

    async def _rewritten(self, result: ApprovalResult) -> bool:
        """Replaces a rejected prompt with what the approver suggests, where that is allowed."""
        suggestion = result.suggested_content
        if self.stage is WorkflowStage.RESPONSE or not self.rules.allow_rewrite or not suggestion:
            return False
        await self.ctx.write(self.path, suggestion)
        return True

    async def _evaluate(self, text: str) -> ApprovalResult:
        """Returns the approver's decision about the file; raises `_ApproverFailed`."""
        approver = self.rules.approver
        # The file to judge comes first: the prompt of a judge names it, and it is the last one to
        # be cut if there is too much to read.
        files = {self.path: text, **await self.material()}
        try:
            if approver in self.session.approvers:
                return await self._registered(approver, files)
            return await self._agent(approver, files)
        except AgentQuota:
            # The run sleeps until the quota is back, as at every other call.
            raise
        except AgentError as error:
            raise _ApproverFailed(f"approver {approver!r} failed: {error}") from error

    async def _registered(self, approver: str, files: Mapping[str, str | None]) -> ApprovalResult:
        context = SessionState(self.ctx).context
        stage = {"phase": self.phase.value, "stage": self.stage.value}
        about = {**stage, "files": dict(files), "context": context}
        prompt = ProductPrompt(f"judge {self.phase.value} {self.stage.value}", [dict(files)])
        reply = await self.ctx.ask(
            self.session.approvers[approver], prompt, key="approver", about=about
        )
        return ApprovalResult.model_validate_json(reply.text)

    async def _agent(self, approver: str, files: Mapping[str, str | None]) -> ApprovalResult:
        rules = self.rules
        prompt = judge_prompt(
            self.phase,
            self.stage,
            files,
            criteria=rules.criteria,
            allow_rewrite=rules.allow_rewrite,
        )
        reply = await self.ctx.ask(approver, prompt, key="approver")
        if by_hand(reply):
            raise _ApproverFailed(
                f"TypeError: AI provider {approver!r} returned None, and a gate needs a decision"
            )
        return read_approval(reply.text, files, allow_rewrite=rules.allow_rewrite)


def _note(result: ApprovalResult) -> Note:
    return Note(approval_feedback=result.feedback or "", suggested_content=result.suggested_content)


def _reasons(note: Note) -> Iterator[str]:
    """Yields why a session waits, for its user."""
    if note.last_error:
        yield f"{note.last_error.rstrip('.')}."
    if note.approval_feedback:
        yield f"Feedback: {note.approval_feedback}"
    if note.suggested_content:
        yield "The approver suggests another version; see suggested_content in state.json."
