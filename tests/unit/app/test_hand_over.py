import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from signoff.app import hand_over as module
from signoff.app.answering import AnswerInput, record_answer
from signoff.app.hand_over import ensure_worker, hand_over, wake, wake_if_handed_over
from signoff.app.project import Project, open_project
from signoff.app.start import StartPlan, plan, resume, start
from signoff.core.outcome import Status
from signoff.core.spend import Limits
from signoff.errors import UsageError
from signoff.runtime.owner import this_process
from signoff.testing import FrozenClock

FLOW = """
from signoff import Outcome, Question, StepDef, Workflow

async def ask(ctx, topic: str, times: int = 1):
    answer = await ctx.wait(Question(f"{topic}?"))
    return Outcome.OK, {"answer": answer.value * times}

WORKFLOW = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))
"""


@pytest.fixture
def planned(project: Project) -> StartPlan:
    (project.home.root / "flow.py").write_text(FLOW)
    limits = {"limits.calls": "7"}
    params = {"topic": "Name", "times": "2"}
    return plan(project.home.root, {}, "flow.py", params, command_line=limits)


async def test_a_run_that_was_handed_over_can_be_resumed_by_hand(
    project: Project, planned: StartPlan, clock: FrozenClock
) -> None:
    """Without any worker, nothing is lost; time in the queue costs no time limit."""
    import asyncio

    await asyncio.to_thread(hand_over, project, planned, name="one")
    clock.advance(500)

    first = await resume(project, "one")
    record_answer(project, first.inbox[0].id, AnswerInput("ab", by="ann"))
    last = await resume(project, "one")

    assert first.status is Status.WAITING
    assert (last.status, last.state) == (Status.COMPLETED, {"answer": "abab"})
    assert last.spend.seconds < 1
    assert Limits.from_json({"calls": 7.0}) == planned.own_limits


async def test_an_answered_run_is_woken_only_if_workers_drive_it(
    project: Project, planned: StartPlan
) -> None:
    """A run that its user drives on a terminal must not continue somewhere else."""
    result = await start(project, planned.target, planned.params, name="own")
    record_answer(project, result.inbox[0].id, AnswerInput("ab", by="ann"))

    assert not wake_if_handed_over(project, "own")
    assert project.store.row("own").status is Status.WAITING
    assert wake(project, "own").status is Status.QUEUED
    assert wake_if_handed_over(project, "own")


async def test_a_run_that_has_ended_is_not_woken(project: Project, planned: StartPlan) -> None:
    """The user has to start a new one."""
    result = await start(project, planned.target, planned.params, name="own")
    record_answer(project, result.inbox[0].id, AnswerInput("ab", by="ann"))
    await resume(project, "own")

    with pytest.raises(UsageError, match="already ended: completed"):
        wake(project, "own")


async def test_a_run_without_a_target_is_not_woken(project: Project, planned: StartPlan) -> None:
    """No worker could find its workflow; it must not fail in the background."""
    async with project.engine() as engine:
        await engine.start(planned.target.workflow, planned.params, name="own")

    with pytest.raises(UsageError, match="started from Python"):
        wake(project, "own")

    assert project.store.row("own").status is Status.WAITING


def test_a_worker_is_started_only_if_none_is_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand detached runs need one worker, not a thousand."""
    started: list[Any] = []

    class Process:
        def __init__(self, *args: object, **options: object) -> None:
            started.append((args, options))

        def wait(self) -> int:
            return 0

    monkeypatch.setattr(subprocess, "Popen", Process)
    with open_project(tmp_path, {}, create=True) as project:
        ensure_worker(project)
        project.store.register(this_process(), 1, [])
        ensure_worker(project)

        assert len(started) == 1
        assert started[0][1]["start_new_session"] is True
        assert (project.home.path / module.LOG).stat().st_mode & 0o077 == 0


def test_a_store_that_no_other_process_sees_gets_no_worker(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker would look for runs in another database."""
    monkeypatch.setattr(subprocess, "Popen", lambda *_args, **_options: pytest.fail("started"))

    ensure_worker(project)


async def test_a_run_is_woken_from_an_event_loop_with_a_dispatcher(
    project: Project, planned: StartPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers call this from wherever they are."""
    dispatcher = AsyncMock()
    monkeypatch.setattr(module, "open_dispatcher", lambda _project: dispatcher)
    project.settings = replace(project.settings, dispatch="pigeon://roof")
    result = await start(project, planned.target, planned.params, name="own")
    record_answer(project, result.inbox[0].id, AnswerInput("ab", by="ann"))

    assert wake(project, "own").status is Status.QUEUED
    dispatcher.wake.assert_awaited_once()
