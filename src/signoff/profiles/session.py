"""What the stages of a session share: the profile, the agents, the gates, and the state so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from signoff.core.context import StepContext
from signoff.core.errors import AuthorError, InvalidParams
from signoff.profiles.model import ProcessingResult
from signoff.profiles.profile import WorkflowProfile
from signoff.profiles.providers import FsAbility
from signoff.profiles.transitions import WorkflowPhase, WorkflowStage
from signoff.runtime.error_text import describe_error

# Parameters are part of the run, so a resume on another machine finds the standards as they were,
# even if their files have changed.
STANDARDS_PARAM = "standards_bundle"
"""The parameter of a run with the standards, which are read once, before it starts."""

STANDARDS_PROVIDER_PARAM = "standards-provider"
"""The parameter of a run with the provider of its standards; no context field has a dash."""

ITERATION = "iteration"
"""The round, as profiles and providers find it in their context."""

MANUAL, SKIP = "manual", "skip"
"""The approvers that are not asked."""

ROLES: Mapping[WorkflowPhase, str] = {
    WorkflowPhase.PLAN: "planner",
    WorkflowPhase.GENERATE: "generator",
    WorkflowPhase.REVIEW: "reviewer",
    WorkflowPhase.REVISE: "reviser",
}
"""Who responds in each phase."""


@dataclass(frozen=True)
class StageRules:
    """How one stage is approved."""

    approver: str = MANUAL
    max_retries: int = 0
    """How often a rejected response is requested again."""
    allow_rewrite: bool = False
    """Whether the content that an approver suggests replaces a rejected prompt."""
    criteria_file: str | None = None
    """A file with what the approver has to check, relative to the project's root."""
    criteria: str = ""
    """The text of that file, which is read when a session is compiled."""
    presence: bool = False
    """Whether a human's approval needs the signature of a passkey."""


@dataclass(frozen=True)
class Session:
    """A profile with everything that its sessions are compiled with."""

    name: str
    profile: WorkflowProfile
    providers: Mapping[str, str]
    """The agent of each role."""
    rules: Mapping[str, StageRules]
    """How each stage is approved, by the step's id."""
    by_hand: frozenset[str]
    """The agents that a human answers for: the session waits for a file instead of asking them."""
    approvers: Mapping[str, str]
    """The agent behind each registered approver, by the approver's key."""
    hash_prompts: bool = False
    fs_abilities: Mapping[str, FsAbility] = field(default_factory=dict)
    """What the registered providers of the session can do with files, by their keys."""

    def provider(self, phase: WorkflowPhase) -> str | None:
        """Returns the agent that responds in a phase; None if a human does."""
        name = self.providers[ROLES[phase]]
        return None if name in self.by_hand else name

    def fs_ability(self, phase: WorkflowPhase) -> FsAbility:
        """Returns what the provider of a phase declares that it can do with files."""
        return self.fs_abilities.get(self.providers[ROLES[phase]], FsAbility.NONE)


@dataclass(frozen=True)
class Note:
    """Why a session waits at a stage: what its user should know, and what comes next."""

    last_error: str = ""
    approval_feedback: str = ""
    suggested_content: str | None = None
    retry_count: int = 0
    """Rejections by the approver in this stage."""
    ask_again: bool = False
    """Whether the provider is asked once more, because a human rejected its response."""

    def to_json(self) -> dict[str, Any]:
        """Returns what is set, for requests and for the state of the run."""
        return {name: value for name, value in vars(self).items() if value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Note:
        """Reads a note from the state of the run."""
        known = (each.name for each in fields(cls))
        return cls(**{name: data[name] for name in known if name in data})


class SessionState:
    """A session's state as its stages read it from the run."""

    def __init__(self, ctx: StepContext) -> None:
        params, state = dict(ctx.workflow_params), ctx.step_state
        self.ctx = ctx
        self.standards: str = params.pop(STANDARDS_PARAM, "")
        """The standards bundle."""
        params.pop(STANDARDS_PROVIDER_PARAM, None)
        self.context = params
        """The values that the session was started with, and the texts of the files they name."""
        self.prompt: str = state.get("prompt", "")
        """The approved prompt of the current phase."""
        self.plan: str = state.get("plan", "")
        """The approved plan."""
        self.review: str = state.get("review", "")
        """The last approved review."""
        self.revision_notes: str = state.get("revision_notes", "")
        """Which issues of the last review the reviser fixed, and which not and why."""
        self.code: dict[str, str] = dict(state.get("code", {}))
        """The code as it is now: texts by path."""
        self.artifacts: list[dict[str, Any]] = list(state.get("artifacts", ()))
        """Every file that was generated so far."""
        note = state.get("note")
        self.note = Note.from_json(note) if note is not None else None
        """Why the previous visit of this stage did not lead on; None at the first visit."""
        self.response: str = state.get("response", "")
        """The provider's last response in this stage, while the session is sent back to it."""
        self.provided_files: dict[str, str | None] = dict(state.get("provided_files", {}))
        """Files that came with the current response, apart from its text."""
        self.feedback: str = state.get("feedback", "")
        """What a human asked for when the phase was decided."""
        self.fs_ability: str | None = state.get("fs_ability")
        """What the user says that providers can do with files."""


def step_id(phase: WorkflowPhase, stage: WorkflowStage) -> str:
    """Returns the id of a stage's step."""
    return f"{phase.value}.{stage.value}"


def position_of(step: str) -> tuple[WorkflowPhase, WorkflowStage]:
    """Returns the phase and stage of a step."""
    phase, _, stage = step.partition(".")
    return WorkflowPhase(phase), WorkflowStage(stage)


STANDARDS_FILE = "standards-bundle.md"
PLAN_FILE = "plan.md"
REVISION_ISSUES_FILE = "revision-issues.md"
"""In the folder of a round: which findings the reviser accepted, and which not."""

NOUNS: Mapping[WorkflowPhase, str] = {
    WorkflowPhase.PLAN: "planning",
    WorkflowPhase.GENERATE: "generation",
    WorkflowPhase.REVIEW: "review",
    WorkflowPhase.REVISE: "revision",
}
"""The phases that have a prompt and a response, as files and methods of profiles name them."""


def stage_path(phase: WorkflowPhase, stage: WorkflowStage, iteration: int) -> str:
    """Returns the path of a prompt or a response."""
    return f"{iteration_folder(iteration)}/{NOUNS[phase]}-{stage.value}.md"


def prompt_path(phase: WorkflowPhase, iteration: int, *, again: bool) -> str:
    """Returns the path of what a provider is asked; `again` if its response was rejected."""
    path = stage_path(phase, WorkflowStage.PROMPT, iteration)
    return path.replace("-prompt.", "-retry-prompt.") if again else path


def code_folder(iteration: int) -> str:
    """Returns the folder of the generated files."""
    return f"{iteration_folder(iteration)}/code"


def revision_issues_path(iteration: int) -> str:
    """Returns the path of the reviser's notes on the findings."""
    return f"{iteration_folder(iteration)}/{REVISION_ISSUES_FILE}"


def iteration_folder(iteration: int) -> str:
    """Returns the folder of one round."""
    return f"iteration-{iteration}"


# Calls profiles and checks what they return.


class ProfileError(AuthorError):
    """A profile raised, or returned a wrong value."""


def create_profile(
    profile_class: type[WorkflowProfile], options: Mapping[str, Any]
) -> WorkflowProfile:
    """Returns a new profile with its options."""
    profile: WorkflowProfile = _call_by(f"{profile_class.__name__}()", profile_class)
    # Set here, so that an author's constructor need not know of them.
    profile.options = options
    return profile


def create_prompt(
    profile: WorkflowProfile,
    phase: WorkflowPhase,
    context: Mapping[str, Any],
    iteration: int = 1,
    feedback: str = "",
) -> str:
    """Returns a profile's prompt for a phase, with the engine's placeholders still in it."""
    method = f"generate_{NOUNS[phase]}_prompt"
    # A copy: what a profile changes in its context must not reach the next stage.
    values = {**context, ITERATION: iteration}
    if feedback:
        values["approval_feedback"] = feedback
    text = _call(profile, method, values)
    # An empty prompt would be written, approved and paid for.
    if not isinstance(text, str) or not text.strip():
        raise ProfileError(f"{_name(profile, method)} must return a text, not {_kind(text)}")
    return text


def process_response(profile: WorkflowProfile, phase: WorkflowPhase, text: str) -> ProcessingResult:
    """Returns what a profile found in a response."""
    method = f"process_{NOUNS[phase]}_response"
    result = _call(profile, method, text)
    if not isinstance(result, ProcessingResult):
        raise ProfileError(
            f"{_name(profile, method)} must return a ProcessingResult, not {_kind(result)}"
        )
    return result


def standards_config(profile: WorkflowProfile, context: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns how a profile configures its standards."""
    config = _call(profile, "get_standards_config", dict(context))
    if not isinstance(config, Mapping):
        name = _name(profile, "get_standards_config")
        raise ProfileError(f"{name} must return a mapping, not {_kind(config)}")
    return config


def _call(profile: WorkflowProfile, method: str, *args: Any) -> Any:
    return _call_by(_name(profile, method), getattr(profile, method), *args)


def _call_by(name: str, call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    except InvalidParams:
        # Reported like a problem with any other parameter.
        raise
    except (Exception, SystemExit) as error:
        # The profile's own code may raise anything.
        raise ProfileError(f"{name} failed: {describe_error(error)}") from error


def _name(profile: WorkflowProfile, method: str) -> str:
    return f"{type(profile).__name__}.{method}"


def _kind(value: Any) -> str:
    return "an empty text" if isinstance(value, str) else repr(value)[:80]
