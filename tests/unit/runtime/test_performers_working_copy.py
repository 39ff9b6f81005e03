"""Tests of agents working on a fresh copy of some texts."""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.base import ManualAgent
from signoff.agents.claude import ClaudeAgent
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentTransient, UsageError
from signoff.core.outcome import Outcome, Status
from signoff.core.spend import Usage
from signoff.core.workflow import Workflow
from signoff.store.run_files import RunFiles
from signoff.testing import ScriptedAgent
from tests.unit.agents.programs import program
from tests.unit.runtime.engine_fixture import EngineFixture, one_step

NAME = "artifact.md"


def editing(text: str = "old\n", name: str = NAME) -> Workflow:
    """Asks for an edit of one text and keeps what became of it."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        reply = await ctx.ask("claude", "Fix it.", files={name: text}, edit=True)
        return Outcome.OK, {"contents": reply.contents, "text": reply.text}

    return one_step(work)


def edits(change: Callable[[Path], object]) -> Callable[[AgentRequest], str]:
    """Answers a request by changing its file."""

    def answer(request: AgentRequest) -> str:
        assert request.workspace is not None
        change(Path(request.workspace) / NAME)
        return "Done."

    return answer


async def test_an_agent_edits_a_copy_and_the_new_text_comes_back(tmp_path: Path) -> None:
    """A refinement is the content of the file afterwards, not what the agent writes about it."""
    bench = EngineFixture(files=RunFiles(tmp_path))
    seen = []

    def change(path: Path) -> None:
        seen.append(path.read_text())
        path.write_text("new\n")

    bench.agent.on("Fix", edits(change))

    result = await bench.start(editing())
    await bench.close()

    assert result.state == {"contents": {NAME: "new\n"}, "text": "Done."}
    assert seen == ["old\n"]


async def test_a_copy_lies_outside_the_run_and_is_gone_afterwards(tmp_path: Path) -> None:
    """From inside the run's folder an agent could write an answer with a short relative path."""
    bench = EngineFixture(files=RunFiles(tmp_path))
    bench.agent.on("Fix", edits(lambda path: path.write_text("new")))

    await bench.start(editing())
    await bench.close()

    (request,) = bench.agent.requests
    assert (request.files, request.edit) == ({}, True)
    assert not (request.workspace or "").startswith(str(tmp_path))
    assert is_gone(request)


async def test_a_copy_is_readable_by_the_owner_only(bench: EngineFixture) -> None:
    """Other users must not see what a run works on."""
    modes: list[int] = []
    bench.agent.on("", edits(lambda path: modes.append(path.parent.stat().st_mode & 0o077)))

    await bench.start(editing())

    assert modes == [0]


def is_gone(request: AgentRequest) -> bool:
    return not os.path.lexists(request.workspace or "")


def link_to(target: Path, path: Path) -> None:
    path.unlink()
    path.symlink_to(target)


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_folder(target: Path, path: Path) -> None:
    """Turns the folder of the working copy itself into a link."""
    shutil.rmtree(path.parent)
    path.parent.symlink_to(target)


@pytest.mark.parametrize("change", [link_to, replace_folder])
async def test_a_working_copy_replaced_by_a_link_is_refused(
    tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    """Read through, it would bring any file of the machine into the artifact."""
    secret = tmp_path / "elsewhere" / NAME
    secret.parent.mkdir()
    secret.write_text("secret")
    target = secret if change is link_to else secret.parent
    bench = EngineFixture(files=RunFiles(tmp_path / "runs"))
    bench.agent.on("Fix", edits(partial(change, target)))

    result = await bench.start(editing())
    await bench.close()

    assert result.status is Status.WAITING
    assert any(reason in result.inbox[0].prompt for reason in ("by a link", "the folder of its"))
    assert secret.read_text() == "secret"
    assert is_gone(bench.agent.requests[0])


async def test_a_working_copy_replaced_by_a_pipe_is_refused(bench: EngineFixture) -> None:
    """Opened as a file, it would stop the run for good."""
    bench.agent.on("Fix", edits(make_pipe))

    result = await bench.start(editing())

    assert result.status is Status.WAITING
    assert "is a pipe" in result.inbox[0].prompt


@pytest.mark.parametrize("instead", [Path.mkdir, Path.exists], ids=["folder", "nothing"])
async def test_what_is_no_file_any_more_is_not_returned_as_text(
    bench: EngineFixture, instead: Callable[[Path], Any]
) -> None:
    """An agent that makes a mess of its copy must not end the run with an error of ours."""

    def change(path: Path) -> None:
        path.unlink()
        instead(path)

    bench.agent.on("Fix", edits(change))

    result = await bench.start(editing())

    assert (result.status, result.state["contents"]) == (Status.COMPLETED, {})


async def test_a_folder_turned_into_a_link_is_refused(bench: EngineFixture, tmp_path: Path) -> None:
    """The same attack through the folder of the file."""
    (tmp_path / NAME).write_text("secret")

    def answer(request: AgentRequest) -> str:
        folder = Path(request.workspace or "") / "docs"
        (folder / NAME).unlink()
        folder.rmdir()
        folder.symlink_to(tmp_path)
        return "Done."

    bench.agent.on("Fix", answer)

    result = await bench.start(editing(name=f"docs/{NAME}"))

    assert result.status is Status.WAITING
    assert "by a link" in result.inbox[0].prompt


async def test_a_binary_file_is_a_bad_answer_that_was_paid_for(bench: EngineFixture) -> None:
    """Bytes cannot be reviewed, and the bill stays known."""
    agent = ScriptedAgent(usage=Usage(1, 1, 0.5))
    agent.on("Fix", edits(lambda path: path.write_bytes(b"\xff\xfe\x00")))
    await bench.restart(agents={"claude": agent})

    result = await bench.start(editing())

    assert result.status is Status.WAITING
    assert "not text" in result.inbox[0].prompt
    assert (result.spend.calls, result.spend.usd) == (2, 1.0)


@pytest.mark.parametrize("name", ["../escape.md", "/etc/passwd", ".hidden", "a/../b", "C:x", ""])
async def test_a_hostile_name_is_refused_before_anything_starts(
    bench: EngineFixture, name: str
) -> None:
    """Names may come from a model's plan."""
    result = await bench.start(editing(name=name))

    assert result.status is Status.FAILED
    assert "cannot be used" in result.reason
    assert bench.agent.requests == []


async def test_files_and_a_workspace_exclude_each_other(bench: EngineFixture) -> None:
    """Which of the two was meant is not for the engine to guess."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        with pytest.raises(UsageError, match="not both"):
            await ctx.ask("claude", "Fix it.", files={NAME: ""}, workspace="here")
        return Outcome.OK, {}

    result = await bench.start(one_step(work))

    assert result.status is Status.COMPLETED


async def test_another_try_begins_with_the_text_as_it_was(tmp_path: Path) -> None:
    """Half an edit by a call that then failed must not be built upon."""
    bench = EngineFixture(files=RunFiles(tmp_path))
    seen = []

    def change(path: Path) -> None:
        seen.append(path.read_text())
        path.write_text("half")
        if len(seen) == 1:
            raise AgentTransient("busy")

    bench.agent.on("Fix", edits(change))

    result = await bench.start(editing())
    await bench.close()

    assert seen == ["old\n", "old\n"]
    assert result.state["contents"] == {NAME: "half"}


async def test_after_a_crash_the_call_is_repeated_on_a_new_copy(tmp_path: Path) -> None:
    """No human has to decide about a half-edited copy: nothing else was touched."""
    bench = EngineFixture(files=RunFiles(tmp_path))
    seen: list[str] = []

    def change(path: Path) -> None:
        seen.append(path.read_text())
        path.write_text("new")

    bench.agent.on("Fix", edits(change))
    await bench.start_and_die(editing(), at=3)

    result = await bench.resume(editing())
    await bench.close()

    assert result.status is Status.COMPLETED
    assert result.state["contents"] == {NAME: "new"}
    assert seen == ["old\n", "old\n"]


async def test_a_human_gets_the_text_and_answers_with_the_new_one(
    bench: EngineFixture,
) -> None:
    """A human has no folder to work in, so the whole text is sent both ways."""
    await bench.restart(agents={"claude": ManualAgent()})

    first = await bench.start(editing("Teh text."))
    (item,) = first.inbox
    bench.answer("The text.")
    result = await bench.resume(editing("Teh text."))

    assert "Teh text." in item.prompt
    assert "whole new text" in item.prompt
    assert result.state == {"contents": None, "text": "The text."}


async def test_a_program_that_edits_in_silence_has_done_its_work(tmp_path: Path) -> None:
    """Coding agents are asked not to print the artifact, and some then print nothing at all."""
    body = f"open({NAME!r}, 'a').write('more\\n')\n"
    agent = ClaudeAgent(path=program(tmp_path / "bin", "claude", body))
    bench = EngineFixture(files=RunFiles(tmp_path / "runs"), agents={"claude": agent})

    result = await bench.start(editing())
    await bench.close()

    assert result.reason == ""
    assert result.state == {"contents": {NAME: "old\nmore\n"}, "text": ""}


async def test_a_program_that_breaks_off_is_tried_again_on_a_fresh_copy(tmp_path: Path) -> None:
    """Half an edit in a copy is no reason to give up: the copy is thrown away."""
    began = tmp_path / "began"
    body = (
        f"text = open({NAME!r}).read()\n"
        f"open({NAME!r}, 'w').write(text + 'half\\n')\n"
        f"if not os.path.exists({str(began)!r}):\n"
        f"    open({str(began)!r}, 'w').close()\n"
        "    os.kill(os.getpid(), 15)\n"
        "print('Done.')\n"
    )
    agent = ClaudeAgent(path=program(tmp_path / "bin", "claude", body))
    bench = EngineFixture(files=RunFiles(tmp_path / "runs"), agents={"claude": agent})

    result = await bench.start(editing())
    await bench.close()

    assert result.reason == ""
    assert result.spend.calls == 2
    assert result.state["contents"] == {NAME: "old\nhalf\n"}
