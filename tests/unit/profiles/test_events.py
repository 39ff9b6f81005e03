import asyncio
from pathlib import Path

import pytest

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Approval
from signoff.core.step import Edge, Result, StepDef
from signoff.core.workflow import Workflow
from signoff.profiles.events import SessionEvent, SessionEvents, SessionPosition
from signoff.runtime.ports import Progress, Recorded
from signoff.testing import ProjectFixture


async def create_prompt(ctx: StepContext) -> Result:
    path = f"iteration-{ctx.iteration}/{ctx.step_id.partition('.')[0]}-prompt.md"
    await ctx.write(path, "a prompt")
    answer = await ctx.wait(Approval("ready?", path=path, edits="accept"), key="decide")
    return (Outcome.OK if answer.approved else Outcome.ITERATE), {}


async def respond(ctx: StepContext) -> Result:
    path = f"iteration-{ctx.iteration}/code/main.py"
    await ctx.write(path, "print()")
    return Outcome.OK, {}


async def review(ctx: StepContext) -> Result:
    return (Outcome.FAIL if ctx.iteration < 3 else Outcome.OK), {}


def session(max_iterations: int = 5) -> Workflow:
    """Has the steps and files of a session, without its agents."""
    again = Edge("plan.prompt", bound=9)
    revise = Edge("revise.response", starts_iteration=True)
    return Workflow(
        "greeting",
        StepDef(
            "plan.prompt",
            handler=create_prompt,
            next={Outcome.OK: "generate.response", Outcome.ITERATE: again},
        ),
        StepDef("generate.response", handler=respond, next={Outcome.OK: "review.response"}),
        StepDef("revise.response", handler=respond, next={Outcome.OK: "review.response"}),
        StepDef("review.response", handler=review, next={Outcome.FAIL: revise, Outcome.OK: None}),
        entry_point="plan.prompt",
        max_iterations=max_iterations,
    )


def brief(events: list[SessionEvent]) -> list[str]:
    """Returns the events in short, as `type phase.stage@round path`."""
    lines = []
    for each in events:
        where = ".".join([each.phase.value, *([each.stage.value] if each.stage else [])])
        lines.append(" ".join([each.type.value, f"{where}@{each.round}", each.path or ""]).rstrip())
    return lines


class WatchedSession:
    """Drives the session `test`; every start and resume has an observer of its own."""

    def __init__(self, folder: Path, workflow: Workflow) -> None:
        self.fixture, self.workflow = ProjectFixture(folder), workflow

    def start(self) -> list[SessionEvent]:
        return self._drive(None)

    def resume(self, *, approved: bool) -> list[SessionEvent]:
        self.fixture.answer(approved, text="so be it")
        return self._drive(SessionPosition("plan.prompt", 1))

    def _drive(self, position: SessionPosition | None) -> list[SessionEvent]:
        seen: list[SessionEvent] = []
        observer = SessionEvents(seen.append, {"test": position} if position else None)

        async def drive() -> None:
            with self.fixture.project() as project:
                async with project.engine([observer]) as engine:
                    if position is None:
                        await engine.start(self.workflow, {}, name="test")
                    else:
                        await engine.resume("test", self.workflow)

        asyncio.run(drive())
        return seen


def test_a_session_up_to_its_first_gate(tmp_path: Path) -> None:
    """A program that shows sessions must learn that one waits, and for which file."""
    events = WatchedSession(tmp_path, session()).start()

    assert brief(events) == [
        "round_started plan@1",
        "phase_entered plan@1",
        "artifact_created plan.prompt@1 iteration-1/plan-prompt.md",
        "approval_required plan.prompt@1 iteration-1/plan-prompt.md",
    ]


def test_a_resumed_session_up_to_its_end(tmp_path: Path) -> None:
    """Another process resumes it, and knows the session's position from the run."""
    watched = WatchedSession(tmp_path, session())
    watched.start()

    events = watched.resume(approved=True)

    assert brief(events) == [
        "approval_granted plan.prompt@1 iteration-1/planning-prompt.md",
        "artifact_approved plan.prompt@1 iteration-1/planning-prompt.md",
        "phase_entered generate@1",
        "artifact_created generate.response@1 iteration-1/code/main.py",
        "approval_granted generate.response@1 iteration-1/generation-response.md",
        "artifact_approved generate.response@1 iteration-1/generation-response.md",
        "phase_entered review@1",
        "approval_granted review.response@1 iteration-1/review-response.md",
        "artifact_approved review.response@1 iteration-1/review-response.md",
        "round_started revise@2",
        "phase_entered revise@2",
        "artifact_created revise.response@2 iteration-2/code/main.py",
        "approval_granted revise.response@2 iteration-2/revision-response.md",
        "artifact_approved revise.response@2 iteration-2/revision-response.md",
        "phase_entered review@2",
        "approval_granted review.response@2 iteration-2/review-response.md",
        "artifact_approved review.response@2 iteration-2/review-response.md",
        "round_started revise@3",
        "phase_entered revise@3",
        "artifact_created revise.response@3 iteration-3/code/main.py",
        "approval_granted revise.response@3 iteration-3/revision-response.md",
        "artifact_approved revise.response@3 iteration-3/revision-response.md",
        "phase_entered review@3",
        "approval_granted review.response@3 iteration-3/review-response.md",
        "artifact_approved review.response@3 iteration-3/review-response.md",
        "workflow_completed review.response@3",
    ]
    assert [each.by for each in events[:4]] == ["test", None, None, None]


def test_a_rejection_approves_nothing(tmp_path: Path) -> None:
    """The stage is entered again and waits again."""
    watched = WatchedSession(tmp_path, session())
    watched.start()

    events = watched.resume(approved=False)

    assert {each.type.value for each in events} == {"artifact_created", "approval_required"}


def test_the_round_limit_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    """A pipeline that waits for the end must see this one."""
    watched = WatchedSession(tmp_path, session(max_iterations=2))
    watched.start()

    *_, last = watched.resume(approved=True)

    assert brief([last]) == ["workflow_failed review.response@2"]
    assert last.status is Status.LIMIT
    assert last.reason


def test_a_cancelled_session_has_failed(tmp_path: Path) -> None:
    """Nothing of it will be finished."""
    seen: list[SessionEvent] = []
    observer = SessionEvents(seen.append, {"test": SessionPosition("plan.prompt")})

    observer.notice(Recorded("test", [ev.RunStopped(Status.CANCELLED, "by the user", at=2)]))

    assert [each.to_json() for each in seen] == [
        {
            "type": "workflow_failed",
            "run": "test",
            "at": 2,
            "round": 1,
            "phase": "plan",
            "stage": "prompt",
            "status": "cancelled",
            "reason": "by the user",
        }
    ]


@pytest.mark.parametrize("status", [Status.WAITING, Status.PARKED, Status.INTERRUPTED])
def test_a_session_that_rests_has_not_ended(status: Status) -> None:
    """It will be resumed."""
    seen: list[SessionEvent] = []
    observer = SessionEvents(seen.append, {"test": SessionPosition("plan.prompt")})

    observer.notice(Recorded("test", [ev.RunStopped(status, at=2)]))

    assert seen == []


def test_a_run_at_an_unknown_position_is_left_alone() -> None:
    """An observer may watch an engine that drives other runs as well."""
    seen: list[SessionEvent] = []

    SessionEvents(seen.append).notice(
        Recorded("other", [ev.StepFinished(Outcome.OK, "draft/ok", "publish", at=1)])
    )
    SessionEvents(seen.append).notice(Progress("other", "draft", "ask#1", "thinking"))

    assert seen == []
