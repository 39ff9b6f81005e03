"""The two kinds of stage: one creates a prompt, the other gets a response and uses it.

A visit of a stage does its work, passes the gate, and returns where the session goes. A
rejection by a human and a response that cannot be used lead back to the same stage, with a
`Note` that says why.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from signoff.core.context import StepContext
from signoff.core.digest import text_digest
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.core.requests import Answer
from signoff.core.step import Result
from signoff.documents.named_texts import read_texts
from signoff.profiles.code_files import fenced, format_code_files
from signoff.profiles.gate import HAND_IN, Rejection, StageGate, Submission
from signoff.profiles.profile import fill_engine_variables
from signoff.profiles.providers import FsAbility, by_hand, files_in
from signoff.profiles.responses import ApprovedResponse, UnusableResponse, provided_text
from signoff.profiles.session import (
    ITERATION,
    MANUAL,
    PLAN_FILE,
    ROLES,
    STANDARDS_FILE,
    Note,
    Session,
    SessionState,
    code_folder,
    create_prompt,
    prompt_path,
    revision_issues_path,
    stage_path,
)
from signoff.profiles.transitions import WorkflowPhase, WorkflowStage, WorkflowStatus

_TEXTS = Path(__file__).with_name("prompts.md")
_READS_FILES = frozenset({FsAbility.LOCAL_WRITE, FsAbility.LOCAL_READ})
_OPTIONS = ("fs_ability", "hash_prompts")
"""What a human can choose along with an approval, for the rest of the session."""


@dataclass(frozen=True)
class StageHandler:
    """Performs one stage of a session."""

    session: Session
    phase: WorkflowPhase
    stage: WorkflowStage

    @property
    def definition(self) -> list[Any]:
        """What a run's digest covers of the handler; the profile is in the workflow's source."""
        # The number is the version of the handlers' behavior. A change of it would make every
        # session under way ask its user to adopt a changed definition.
        return ["profiles", self.phase.value, self.stage.value, 1]

    async def __call__(self, ctx: StepContext) -> Result:
        """Performs the stage once."""
        kind = PromptStage if self.stage is WorkflowStage.PROMPT else ResponseStage
        return await kind(self.session, self.phase, ctx).visit()


@dataclass
class _Stage(ABC):
    """One visit of a stage."""

    session: Session
    phase: WorkflowPhase
    ctx: StepContext
    stage: ClassVar[WorkflowStage]

    @abstractmethod
    async def visit(self) -> Result:
        """Returns where the session goes once there is a decision about the stage's file."""

    async def _material(self) -> dict[str, str | None]:
        """Returns what the approver needs to judge the file besides the file itself."""
        # A prompt is judged alone: its provider sees nothing else either.
        return {}

    @property
    def _state(self) -> SessionState:
        return SessionState(self.ctx)

    @property
    def _gate(self) -> StageGate:
        path = self._path
        return StageGate(self.session, self.phase, self.stage, self.ctx, path, self._material)

    @property
    def _path(self) -> str:
        return stage_path(self.phase, self.stage, self.ctx.iteration)


class PromptStage(_Stage):
    """Creates the prompt of a phase."""

    stage = WorkflowStage.PROMPT

    async def visit(self) -> Result:
        """Writes the prompt and returns once it is approved."""
        if self.phase is WorkflowPhase.PLAN:
            await self.ctx.write(STANDARDS_FILE, self._state.standards)
        text = await self._create(self._state.feedback)
        decided = await self._gate.judge(Submission(text), self._again)
        # The session stays in this visit while a human edits, so the edited text is what the digest
        # and the provider get.
        while isinstance(decided, Rejection):
            # A prompt has no provider to ask again: its user edits the file.
            decided = await self._gate.wait(decided.note)
        # A phase counts as entered when its prompt is approved: until then the session could still
        # be cancelled without having asked anyone.
        entered = {"phase": self.phase.value, "status": WorkflowStatus.IN_PROGRESS.value}
        entered["timestamp"] = self.ctx.now().isoformat()
        update = {
            **chosen_options(decided.answer),
            "note": None,
            "feedback": "",
            "prompt": decided.text,
            "phase_history": [*self.ctx.step_state.get("phase_history", ()), entered],
        }
        return Outcome.OK, {**update, **self._hashes(decided.text, update)}

    async def _create(self, feedback: str) -> str:
        state = self._state
        draft = create_prompt(
            self.session.profile, self.phase, state.context, self.ctx.iteration, feedback
        )
        ability = fs_ability(self.session, self.phase, state)
        text = complete_prompt(draft, state, self.phase, feedback, ability)
        # The key identifies the file. If a template changes while the session waits here, the
        # prompt that was written counts, so it is read back.
        await self.ctx.write(self._path, ProductPrompt(text))
        return (await self.ctx.read(self._path)).text

    async def _again(self, note: Note, _text: str) -> Submission | None:
        """Creates a rejected prompt again, if the profile can."""
        if not self.session.profile.can_regenerate_prompts:
            return None
        return Submission(await self._create(note.approval_feedback))

    def _hashes(self, text: str, update: dict[str, Any]) -> dict[str, Any]:
        state = self.ctx.step_state
        wanted = update.get("hash_prompts", state.get("hash_prompts", self.session.hash_prompts))
        hashes = {**state.get("prompt_hashes", {}), self._path: text_digest(text)}
        return {"prompt_hashes": hashes} if wanted else {}


@dataclass
class ResponseStage(_Stage):
    """Gets the response of a phase and uses it."""

    stage = WorkflowStage.RESPONSE
    files: dict[str, str | None] = field(default_factory=dict)
    """Files that came with the provider's response, apart from its text."""
    text: str = ""
    """The provider's last response."""

    async def visit(self) -> Result:
        """Returns where the session goes once there is a decision about the response."""
        self.files, self.text = self._state.provided_files, self._state.response
        decided = await self._decide()
        if isinstance(decided, Rejection):
            return self._back(replace(decided.note, ask_again=self._provider is not None))
        # A provider may send files next to its text. Once a human has changed the text, the files
        # in it are meant, and those that came before are outdated.
        edited = decided.text != self.text
        response = ApprovedResponse(self.session, self.phase, self.ctx, decided, self.files, edited)
        try:
            outcome, update = await response.apply()
        except UnusableResponse as error:
            return self._back(replace(decided.note, last_error=str(error)))
        left: dict[str, Any] = {"note": None, "response": "", "provided_files": {}}
        return outcome, {**chosen_options(decided.answer), **update, **left}

    async def _decide(self) -> Submission | Rejection:
        state, note = self._state, self._state.note
        if self._provider is None:
            return await self._hand_in(note)
        # Without a note this is the first visit, so nothing has been asked or paid for yet.
        if note is None:
            text = await self._ask(state.prompt)
            if text is None:
                return await self._hand_in(None)
            return await self._gate.judge(Submission(text), self._again)
        if note.ask_again:
            rejected = replace(note, ask_again=False)
            prompt = retry_prompt(state.prompt, state.response, note.approval_feedback)
            if await self._ask(prompt, again=True) is None:
                return await self._hand_in(rejected)
            return await self._gate.wait(rejected)
        return await self._gate.wait(note)

    async def _hand_in(self, note: Note | None) -> Submission | Rejection:
        """Waits for a human's response, which a human's approval does not judge once more."""
        question = {"question": HAND_IN} if note is None else {}
        note = note or Note()
        decided = await self._gate.wait(note, **question)
        rules = self._gate.rules
        # Who writes the response by hand and approves it has decided; an approver looks at it only
        # as often as it would have looked at an agent's.
        judged = rules.approver == MANUAL or note.retry_count > rules.max_retries
        if isinstance(decided, Rejection) or judged:
            return decided
        gate = self._gate
        return await gate.judge(decided, lambda note, _text: gate.wait(note), note.retry_count)

    async def _again(self, note: Note, text: str) -> Submission | None:
        prompt = retry_prompt(self._state.prompt, text, note.approval_feedback)
        newer = await self._ask(prompt, again=True)
        return Submission(newer) if newer is not None else None

    async def _ask(self, prompt: str, *, again: bool = False) -> str | None:
        """Asks the provider and writes its response; None if it leaves that to a human."""
        about = {
            "role": ROLES[self.phase],
            "phase": self.phase.value,
            ITERATION: self.ctx.iteration,
            "context": self._state.context,
        }
        if self._provider in self.session.fs_abilities:
            # Written again although it is there: another machine may continue the session.
            path = prompt_path(self.phase, self.ctx.iteration, again=again)
            await self.ctx.write(path, ProductPrompt(prompt))
            about["files"] = {"prompt_file": path, "response_file": self._path}
        reply = await self.ctx.ask(self._provider or "", prompt, key="provider", about=about)
        if by_hand(reply):
            return None
        self.files = files_in(reply)
        texts = {path: text for path, text in self.files.items() if text is not None}
        # A provider that writes the file itself often answers "done"; its file is the response
        # then.
        own = await self._own_file()
        # On a retry, what is in the file may be the response that was rejected.
        new = own if own != self.text else ""
        text = new or reply.text or format_code_files(texts) or own
        await self.ctx.write(self._path, text)
        self.text = text
        return text

    async def _own_file(self) -> str:
        """Returns the text of the response file if the provider was asked to write it itself."""
        if fs_ability(self.session, self.phase, self._state) is not FsAbility.LOCAL_WRITE:
            return ""
        found = await self.ctx.read(self._path, missing_ok=True)
        return found.text if found is not None else ""

    def _back(self, note: Note) -> Result:
        """Leads back to this stage."""
        kept = {"response": self.text, "provided_files": self.files}
        return Outcome.ITERATE, {"note": note.to_json(), **kept}

    async def _material(self) -> dict[str, str | None]:
        """Returns what the approver needs to judge the response."""
        state, iteration = self._state, self.ctx.iteration
        match self.phase:
            case WorkflowPhase.PLAN:
                prompt = stage_path(self.phase, WorkflowStage.PROMPT, iteration)
                return {prompt: state.prompt}
            case WorkflowPhase.GENERATE:
                return {PLAN_FILE: state.plan, **await self._provided()}
            case WorkflowPhase.REVIEW:
                return {PLAN_FILE: state.plan, "the code": format_code_files(state.code)}
            case _:
                issues = revision_issues_path(iteration)
                notes = await self.ctx.read(issues, missing_ok=True)
                review = stage_path(WorkflowPhase.REVIEW, WorkflowStage.RESPONSE, iteration - 1)
                texts = {review: state.review, issues: notes.text if notes else None}
                return {**texts, **await self._provided()}

    async def _provided(self) -> dict[str, str | None]:
        """Returns the files that came with the response, as an approver gets them."""
        folder = code_folder(self.ctx.iteration)
        return {
            f"{folder}/{path}": await provided_text(self.ctx, path, text)
            for path, text in self.files.items()
        }

    @property
    def _provider(self) -> str | None:
        return self.session.provider(self.phase)


def fs_ability(session: Session, phase: WorkflowPhase, state: SessionState) -> FsAbility:
    """Returns what the provider of a phase can do with files."""
    return FsAbility(state.fs_ability or session.fs_ability(phase))


def chosen_options(answer: Answer | None) -> dict[str, Any]:
    """Returns what a human chose along with an approval."""
    extras = answer.extras if answer is not None else {}
    return {name: extras[name] for name in _OPTIONS if name in extras}


def complete_prompt(
    draft: str,
    state: SessionState,
    phase: WorkflowPhase,
    feedback: str = "",
    ability: FsAbility = FsAbility.NONE,
) -> str:
    """Returns a profile's prompt as a provider with that ability gets it."""
    iteration = state.ctx.iteration
    # A provider that reads files gets paths: the texts would make its prompt several times as long,
    # and it would read the files anyway.
    values = (
        _paths(phase, iteration, feedback)
        if ability in _READS_FILES
        else {
            "STANDARDS": state.standards.strip(),
            "PLAN": state.plan.strip(),
            "CODE": format_code_files(state.code).rstrip("\n"),
            "REVIEW": state.review.strip(),
            "FEEDBACK": feedback,
        }
    )
    text = fill_engine_variables(draft, values).rstrip("\n")
    if phase is WorkflowPhase.REVIEW and iteration > 1:
        text = f"{text}\n\n{_previous_review(state, ability)}"
    response = stage_path(phase, WorkflowStage.RESPONSE, iteration)
    ending = _output_instructions(ability, response)
    return f"{text}\n\n{ending}\n" if ending else f"{text}\n"


def retry_prompt(prompt: str, previous: str, feedback: str) -> ProductPrompt:
    """Returns the prompt for another response, with what was wrong with the previous one."""
    # The whole prompt comes first, unchanged: agents that cache what they have read pay for it
    # once.
    parts = [prompt.rstrip("\n"), "---", read_texts(_TEXTS)["rejected"]]
    if previous:
        parts += ["Your previous answer:", fenced(previous).rstrip("\n")]
    parts += ["Why it was rejected:", feedback.strip() or "No reason was given."]
    return ProductPrompt("\n\n".join(parts) + "\n", [prompt, previous, feedback])


def _previous_review(state: SessionState, ability: FsAbility) -> str:
    """Returns what a reviewer needs so that rejected issues do not come back for ever."""
    iteration = state.ctx.iteration
    review = stage_path(WorkflowPhase.REVIEW, WorkflowStage.RESPONSE, iteration - 1)
    found = {"The review": (review, state.review)}
    if state.revision_notes:
        notes = revision_issues_path(iteration)
        found["The reviser's decisions"] = (notes, state.revision_notes)
    by_path = ability in _READS_FILES
    parts = [
        f"{title}: (read `{path}`)" if by_path else f"{title}:\n\n{fenced(text).rstrip()}"
        for title, (path, text) in found.items()
    ]
    return "\n\n".join([read_texts(_TEXTS)["reviewed-before"], *parts])


def _paths(phase: WorkflowPhase, iteration: int, feedback: str) -> dict[str, str]:
    # The revision belongs to the round that its review started.
    reviewed = iteration - 1 if phase is WorkflowPhase.REVISE else iteration
    review = stage_path(WorkflowPhase.REVIEW, WorkflowStage.RESPONSE, reviewed)
    return {
        "STANDARDS": f"(read `{STANDARDS_FILE}`)",
        "PLAN": f"(read `{PLAN_FILE}`)",
        "CODE": f"(read every file in `{code_folder(reviewed)}/`)",
        "REVIEW": f"(read `{review}`)",
        "FEEDBACK": feedback,
    }


def _output_instructions(ability: FsAbility, response: str) -> str:
    text = read_texts(_TEXTS).get(ability.value, "")
    return text.format(path=response, name=response.rsplit("/", 1)[-1])
