"""A session for one test: a profile, scripted agents, and a user who decides at the gates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from signoff.app.people.answering import AnswerInput, find_item, record_answer
from signoff.app.runs.history import form_of, load_state
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.notation import CompileContext
from signoff.profiles import (
    AIProvider,
    AIProviderFactory,
    AIProviderResult,
    ApprovalDecision,
    ApprovalProvider,
    ApprovalProviderFactory,
    ApprovalResult,
    FsAbility,
    ProcessingResult,
    ProfileFactory,
    WorkflowProfile,
    WorkflowState,
    WorkflowStatus,
    WriteOp,
    WritePlan,
)
from signoff.profiles.compile import resolve
from signoff.profiles.view import session_fields
from signoff.runtime.ports import Agent
from signoff.runtime.result import RunResult
from signoff.testing import ProjectFixture, ScriptedAgent

PROFILE = "probe"
APPROVED = ApprovalResult(decision=ApprovalDecision.APPROVED)
PENDING = ApprovalResult(decision=ApprovalDecision.PENDING)


def rejected(feedback: str = "too short", suggestion: str | None = None) -> ApprovalResult:
    """Returns a rejection."""
    return ApprovalResult(
        decision=ApprovalDecision.REJECTED, feedback=feedback, suggested_content=suggestion
    )


def review(verdict: str, issues: int = 0, critical: int = 0, missing: int = 0) -> str:
    """Returns a review with that verdict and those counts."""
    return (
        f"My findings.\n\n@@@REVIEW_META\nverdict: {verdict}\nissues_total: {issues}\n"
        f"issues_critical: {critical}\nmissing_inputs: {missing}\n@@@\n"
    )


def writes(*files: tuple[str, str]) -> ProcessingResult:
    """Returns a result with those files."""
    plan = WritePlan(writes=[WriteOp(path=path, content=content) for path, content in files])
    return ProcessingResult(status=WorkflowStatus.SUCCESS, write_plan=plan)


class ProbeProfile(WorkflowProfile):
    """Puts a response into one file; tests override what they are about."""

    schema: ClassVar[Mapping[str, Any]] = {"subject": {"type": "string", "default": "the sea"}}

    @classmethod
    def get_metadata(cls) -> Mapping[str, Any]:
        return {"name": PROFILE, "description": "a probe", "context_schema": cls.schema}

    def get_standards_config(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def generate_planning_prompt(self, context: Mapping[str, Any]) -> str:
        return f"Plan {context['subject']}."

    def generate_generation_prompt(self, context: Mapping[str, Any]) -> str:
        return "Write this plan: {{PLAN}}"

    def generate_review_prompt(self, context: Mapping[str, Any]) -> str:
        return "Review this code: {{CODE}}"

    def generate_revision_prompt(self, context: Mapping[str, Any]) -> str:
        return "Revise this code: {{CODE}} {{REVIEW}} {{FEEDBACK}}"

    def process_planning_response(self, content: str) -> ProcessingResult:
        return ProcessingResult(status=WorkflowStatus.SUCCESS)

    def process_generation_response(self, content: str) -> ProcessingResult:
        return writes(("poem.txt", content))

    def process_review_response(self, content: str) -> ProcessingResult:
        return ProcessingResult(status=WorkflowStatus.SUCCESS)

    def process_revision_response(self, content: str) -> ProcessingResult:
        return writes(("poem.txt", content))


def register_approver(key: str, *results: Any) -> list[dict[str, Any]]:
    """Registers an approver with these results in turn, the last one repeated; returns its calls.

    An exception is raised.
    """
    calls: list[dict[str, Any]] = []

    class Scripted(ApprovalProvider):
        def evaluate(self, **stage: Any) -> ApprovalResult:
            calls.append(stage)
            result: Any = results[min(len(calls), len(results)) - 1]
            if isinstance(result, Exception):
                raise result
            return result  # type: ignore[no-any-return]

    ApprovalProviderFactory.register(key, Scripted)
    return calls


def register_provider(
    key: str,
    generate: Callable[[str, Mapping[str, Any]], AIProviderResult | None],
    ability: FsAbility = FsAbility.NONE,
) -> None:
    """Registers a provider that responds with what a function returns."""

    class Scripted(AIProvider):
        fs_ability = ability

        def validate(self) -> None:
            """Is always ready."""

        def generate(self, prompt: str, context: Mapping[str, Any]) -> AIProviderResult | None:
            return generate(prompt, context)

    AIProviderFactory.register(key, Scripted)


class SessionFixture:
    """Starts a session and decides at its gates, each time as another process."""

    def __init__(
        self, folder: Path, profile: type[WorkflowProfile] = ProbeProfile, **settings: Any
    ) -> None:
        """`settings` is the section `profiles:`; without any, all is done by hand."""
        ProfileFactory.register(PROFILE, profile)
        self.fixture = ProjectFixture(folder)
        self.settings = settings
        self.options: dict[str, Any] = {}
        self.result: RunResult | None = None

    @property
    def workflow(self) -> Workflow:
        """The compiled profile."""
        context = CompileContext(
            root=self.fixture.folder,
            home=self.fixture.home.path,
            options=self.options,
            settings={"profiles": self.settings},
        )
        return resolve(PROFILE, context)

    def start(self, params: Mapping[str, Any] | None = None, **agents: Agent) -> WorkflowState:
        """Starts the session; returns its state at the first wait or at the end."""
        self.fixture.agents.update(agents)
        self.result = self.fixture.run(self.workflow, params)
        return self.state

    def approve(self, edit: str | None = None, *, text: str = "", **extras: Any) -> WorkflowState:
        """Approves what the session waits for, after an edit if there is one."""
        if edit is not None:
            self.write(self.pending_path, edit)
        self.record(True, text, **extras)
        return self.resume()

    def reject(self, feedback: str) -> WorkflowState:
        """Rejects what the session waits for."""
        self.record(False, feedback)
        return self.resume()

    def record(self, value: bool, text: str = "", **extras: Any) -> None:
        """Records a decision without continuing."""
        with self.fixture.project() as project:
            answer = AnswerInput(value, text, by="ann", extras=extras)
            record_answer(project, find_item(project).id, answer)

    def resume(self) -> WorkflowState:
        """Continues the session."""
        self.result = self.fixture.resume(self.workflow)
        return self.state

    @property
    def status(self) -> Status:
        """The status of the run."""
        assert self.result is not None
        return self.result.status

    @property
    def step(self) -> str:
        """Where the session is, such as `plan.prompt`."""
        state = self.state
        assert state.stage is not None, (state.phase, state.last_error)
        return f"{state.phase.value}.{state.stage.value}"

    @property
    def state(self) -> WorkflowState:
        """The session as its user sees it."""
        with self.fixture.project() as project:
            row = project.run("test")
            source = json.loads(project.store.description(row.id)).get("source") or {}
            forms = [form_of(project, item) for item in project.store.items(row.name)]
            fields = session_fields(load_state(project, row), source, forms)
        state = WorkflowState.model_validate(fields)
        # Commands and `state.json` show the fields without the model.
        assert state.model_dump(mode="json", exclude={"run"}) == fields
        return state

    @property
    def stored(self) -> Mapping[str, Any]:
        """The state of the run."""
        with self.fixture.project() as project:
            return load_state(project, project.run("test")).state

    @property
    def pending_path(self) -> str:
        """The file that the session waits for."""
        with self.fixture.project() as project:
            return str(form_of(project, find_item(project, "test"))["path"])

    @property
    def folder(self) -> Path:
        """The run directory."""
        return self.fixture.home.runs / "test"

    def text(self, path: str) -> str:
        """Returns a file of the session."""
        return (self.folder / path).read_text("utf-8")

    def write(self, path: str, text: str) -> None:
        """Saves a file as an editor would."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())

    @property
    def files(self) -> set[str]:
        """The paths of all files that belong to the session's user."""
        found = (path.relative_to(self.folder) for path in self.folder.rglob("*"))
        own = {path.as_posix() for path in found if (self.folder / path).is_file()}
        return {path for path in own if path.startswith("iteration-") or path.endswith(".md")}


def agent(*answers: Any) -> ScriptedAgent:
    """Returns an agent with these answers in turn; the last one repeats."""
    return ScriptedAgent().on("", *answers)
