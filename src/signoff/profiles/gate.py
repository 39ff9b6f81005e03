"""The gate of a stage: an approver judges the file, and a human decides where none can."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from signoff.core.context import StepContext
from signoff.core.effects import ProductPrompt
from signoff.core.requests import Answer, Approval
from signoff.errors import AgentError, AgentQuota
from signoff.light_dataclass import light_dataclass
from signoff.profiles.judge import judge_prompt, judged
from signoff.profiles.model import ApprovalDecision, ApprovalResult
from signoff.profiles.phases import WorkflowPhase, WorkflowStage
from signoff.profiles.provider_agents import by_hand
from signoff.profiles.session import (
    MANUAL,
    SKIP,
    Note,
    Session,
    SessionState,
    StageRules,
    step_id,
)

GateMaterial = Callable[[], Awaitable[dict[str, str | None]]]
"""Returns texts by path that an approver reads along with the file it judges."""

Again = Callable[[ApprovalResult, str], Awaitable[str | None]]
"""Gets another version of a file that the approver rejected; None if there is no other."""


class _ApproverFailed(Exception):  # noqa: N818  # never leaves this module
    """The approver did not decide; it is asked again when a human has looked."""


@light_dataclass(frozen=True)
class Passed:
    """The file is approved."""

    text: str
    answer: Answer | None = None
    """The human's decision, if a human decided."""


@light_dataclass(frozen=True)
class TurnedDown:
    """A human rejected the file."""

    feedback: str


@light_dataclass(frozen=True)
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

    async def judge(self, text: str, again: Again) -> Passed | TurnedDown:
        """Returns once the approver or, where it does not approve, a human has decided."""
        count = 0
        while True:
            try:
                result = await self._evaluate(text)
            except _ApproverFailed as error:
                return await self.wait(Note(last_error=str(error)), then_judge=True)
            if result.decision is ApprovalDecision.APPROVED:
                return Passed(text)
            if result.decision is ApprovalDecision.PENDING:
                return await self.wait(Note(approval_feedback=result.feedback or ""))
            count += 1
            newer = None
            if self.stage is WorkflowStage.PROMPT and result.suggested_content:
                await self.ctx.write(self.path, result.suggested_content)
            elif count <= self.rules.max_retries:
                newer = await again(result, text)
            if newer is None:
                return await self.wait(self._rejection(result, count))
            text = newer

    async def wait(
        self, note: Note, *, then_judge: bool = False, missing: bool = False
    ) -> Passed | TurnedDown:
        """Returns once a human has decided about the file, which may be edited first.

        With `then_judge` the human hands the file in, and the approver decides about it. After
        `max_retries` rejections it is the human who decides.
        """
        count = 0
        while True:
            answer = await self._ask_human(note, missing=missing)
            if not answer.approved:
                return TurnedDown(answer.text)
            text = answer.content or ""
            if not then_judge or self.rules.approver == MANUAL:
                return Passed(text, answer)
            try:
                result = await self._evaluate(text)
            except _ApproverFailed as error:
                note = Note(last_error=str(error), retry_count=count)
                continue
            if result.decision is ApprovalDecision.APPROVED:
                return Passed(text, answer)
            missing, count = False, count + 1
            pending = result.decision is ApprovalDecision.PENDING
            then_judge = not pending and count <= self.rules.max_retries
            note = self._rejection(result, count)

    def _rejection(self, result: ApprovalResult, count: int) -> Note:
        rejected = result.decision is ApprovalDecision.REJECTED
        return Note(
            last_error=f"Approval rejected after {count} attempts" if rejected else "",
            approval_feedback=result.feedback or "",
            suggested_content=result.suggested_content,
            retry_count=count if rejected else 0,
        )

    async def _ask_human(self, note: Note, *, missing: bool) -> Answer:
        about = {
            "title": f"{self.phase.value} {self.stage.value}",
            "phase": self.phase.value,
            "stage": self.stage.value,
            **note.to_json(),
        }
        text = ProductPrompt(_question(self.path, note, missing=missing), [self.path])
        request = Approval(text, path=self.path, edits="accept", about=about)
        return await self.ctx.wait(request, key="decide")

    async def _evaluate(self, text: str) -> ApprovalResult:
        """Returns the approver's decision about the file; raises `_ApproverFailed`."""
        approver = self.rules.approver
        if approver == MANUAL:
            return ApprovalResult(decision=ApprovalDecision.PENDING)
        if approver == SKIP:
            return ApprovalResult(decision=ApprovalDecision.APPROVED)
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
        return judged(reply.text, files, allow_rewrite=rules.allow_rewrite)


def _question(path: str, note: Note, *, missing: bool) -> str:
    """Returns what a waiting session shows its user."""
    lines = [note.last_error] if note.last_error else []
    if note.approval_feedback:
        lines.append(f"Feedback: {note.approval_feedback}")
    if note.suggested_content:
        lines.append("The approver suggests another version; see suggested_content in state.json.")
    if missing:
        lines.append(f"Save the response as {path}, then approve.")
    else:
        lines.append(f"Approve {path}? You may edit it first.")
    return "\n".join(lines)
