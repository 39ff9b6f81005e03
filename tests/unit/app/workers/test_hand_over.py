import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.runs.start import StartPlan, plan, resume, start
from signoff.app.settings.project import Project, open_project
from signoff.app.workers import hand_over as module
from signoff.core.errors import UsageError
from signoff.core.outcome import Status
from signoff.core.spend import Limits
from signoff.runtime.owner import this_process
from signoff.testing import FrozenClock, ScriptedAgent, WrappedStore

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

    await asyncio.to_thread(module.hand_over, project, planned, name="one")
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

    assert not module.wake_if_handed_over(project, "own")
    assert project.store.row("own").status is Status.WAITING
    assert module.wake(project, "own").status is Status.QUEUED
    assert module.wake_if_handed_over(project, "own")


async def test_a_run_that_has_ended_is_not_woken(project: Project, planned: StartPlan) -> None:
    """The user has to start a new one."""
    result = await start(project, planned.target, planned.params, name="own")
    record_answer(project, result.inbox[0].id, AnswerInput("ab", by="ann"))
    await resume(project, "own")

    with pytest.raises(UsageError, match="already ended: completed"):
        module.wake(project, "own")


async def test_a_run_without_a_target_is_not_woken(project: Project, planned: StartPlan) -> None:
    """No worker could find its workflow; it must not fail in the background."""
    async with project.engine() as engine:
        await engine.start(planned.target.workflow, planned.params, name="own")

    with pytest.raises(UsageError, match="started from Python"):
        module.wake(project, "own")

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
        module.ensure_worker(project)
        project.store.register(this_process(), 1, [])
        module.ensure_worker(project)

        assert len(started) == 1
        assert started[0][1]["start_new_session"] is True
        assert (project.home.path / module.LOG).stat().st_mode & 0o077 == 0


def test_a_store_that_no_other_process_sees_gets_no_worker(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker would look for runs in another database."""
    monkeypatch.setattr(subprocess, "Popen", lambda *_args, **_options: pytest.fail("started"))

    module.ensure_worker(project)


async def test_a_run_is_woken_from_an_event_loop_with_a_dispatcher(
    project: Project, planned: StartPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers call this from wherever they are."""
    dispatcher = AsyncMock()
    monkeypatch.setattr(module, "open_dispatcher", lambda _project: dispatcher)
    project.settings = replace(project.settings, dispatch="pigeon://roof")
    result = await start(project, planned.target, planned.params, name="own")
    record_answer(project, result.inbox[0].id, AnswerInput("ab", by="ann"))

    assert module.wake(project, "own").status is Status.QUEUED
    dispatcher.wake.assert_awaited_once()


FLOW_CAPABILITIES = """
goal: A line about the sea.
constraints: {files: [clear.yaml]}
workflow:
  - {step: generate, agent: codex}
  - {step: critique, agent: claude}
  - {step: adjudicate, agent: policy}
"""

EDITS = """
from signoff import Outcome, StepDef, Workflow

STEP = StepDef("only", "Edit", ["Edit it."], edits=True, next={Outcome.OK: None})
WORKFLOW = Workflow("edits", STEP)
"""


class Server(WrappedStore):
    """A store that other hosts use too."""

    def local_file(self) -> Path | None:
        return None


@pytest.fixture
def shared(tmp_path: Path) -> Project:
    project = open_project(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "none")}, create=True)
    (tmp_path / "flow.yaml").write_text(FLOW_CAPABILITIES)
    (tmp_path / "edits.py").write_text(EDITS)
    (tmp_path / "clear.yaml").write_text("summary: It is clear.\n")
    return project


def needs(shared: Project, target: str, **options: object) -> tuple[str, ...]:
    planned = plan(shared.home.root, {}, target, {})
    return module.needs_of(shared, planned, **options)  # type: ignore[arg-type]  # as given by the test


def test_a_run_needs_the_agents_that_it_asks(shared: Project) -> None:
    """A worker without one of them would fail the run after the first steps are paid for."""
    with shared:
        plain = needs(shared, "flow.yaml")
        switched = needs(shared, "flow.yaml", switch={"claude": "gemini"}, labels=["gpu"])

    assert plain == ("agent:claude", "agent:codex")
    assert switched == ("agent:codex", "agent:gemini", "gpu")


def test_with_a_shared_store_a_run_also_needs_its_folder(shared: Project) -> None:
    """A worker of another project would not find the workflow."""
    with shared:
        shared.store = Server(shared.store)

        assert f"folder:{shared.home.root}" in needs(shared, "flow.yaml")
        assert not any(each.startswith("host:") for each in needs(shared, "flow.yaml"))
        assert any(each.startswith("host:") for each in needs(shared, "edits.py"))


def test_a_worker_can_do_what_its_agents_are_ready_for(
    shared: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown agent is no capability, and an agent of the program is ready."""
    shared.agents = {"writer": ScriptedAgent()}
    able = module.WorkerCapabilities(shared, ["gpu"])
    with shared:
        changed = able.check(["agent:manual", "agent:writer", "agent:nobody", "label"])
        again = able.check(["agent:manual", "agent:nobody"])
        monkeypatch.setattr(module, "RECHECK_SECONDS", -1.0)
        shared.agents = {}
        lost = able.check(["agent:writer"])

    assert (changed, again, lost) == (True, False, True)
    assert {each for each in able.names if each.startswith("agent:")} == {"agent:manual"}
    assert {"gpu", f"folder:{shared.home.root}"} <= able.names
