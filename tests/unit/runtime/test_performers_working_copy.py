"""Tests of agents working on a fresh copy of some texts."""

import json
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
from tests.tables import table
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
    """A refinement is the content of the file afterwards, not what the agent writes about it.

    The copy is private and outside the run: from inside the run's folder an agent could write an
    answer with a short relative path.
    """
    bench = EngineFixture(files=RunFiles(tmp_path))
    seen: list[Any] = []

    def change(path: Path) -> None:
        seen.append((path.read_text(), path.parent.stat().st_mode & 0o077))
        path.write_text("new\n")

    bench.agent.on("Fix", edits(change))

    result = await bench.start(editing())
    await bench.close()

    (request,) = bench.agent.requests
    assert result.state == {"contents": {NAME: "new\n"}, "text": "Done."}
    assert seen == [("old\n", 0)]
    assert (request.files, request.edit) == ({}, True)
    assert not (request.workspace or "").startswith(str(tmp_path))
    assert is_gone(request)


def is_gone(request: AgentRequest) -> bool:
    return not os.path.lexists(request.workspace or "")


def link_to(target: Path, path: Path) -> None:
    path.unlink()
    path.symlink_to(target / NAME)


def make_pipe(_target: Path, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_folder(target: Path, path: Path) -> None:
    """Turns the folder of the working copy itself into a link."""
    shutil.rmtree(path.parent)
    path.parent.symlink_to(target)


def replace_inner_folder(target: Path, path: Path) -> None:
    shutil.rmtree(path.parent / "docs")
    (path.parent / "docs").symlink_to(target)


def write_bytes(_target: Path, path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


@table(
    ("change", "name", "reason"),
    [
        (link_to, NAME, "by a link"),
        (replace_folder, NAME, "the folder of its"),
        (replace_inner_folder, f"docs/{NAME}", "by a link"),
        (make_pipe, NAME, "is a pipe"),
        (write_bytes, NAME, "not text"),
    ],
)
async def test_a_working_copy_that_is_no_text_any_more_is_refused(
    tmp_path: Path, change: Callable[[Path, Path], None], name: str, reason: str
) -> None:
    """A link would bring any file of the machine into the artifact, a pipe stop the run for good.

    The answers were paid for, and the bill stays known.
    """
    secret = tmp_path / "elsewhere" / NAME
    secret.parent.mkdir()
    secret.write_text("secret")
    agent = ScriptedAgent(usage=Usage(1, 1, 0.5))
    agent.on("Fix", edits(partial(change, secret.parent)))
    bench = EngineFixture(files=RunFiles(tmp_path / "runs"), agents={"claude": agent})

    result = await bench.start(editing(name=name))
    await bench.close()

    assert result.status is Status.WAITING
    assert reason in result.inbox[0].prompt
    assert secret.read_text() == "secret"
    assert is_gone(agent.requests[0])
    assert (result.spend.calls, result.spend.usd) == (2, 1.0)


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


@pytest.mark.parametrize("crashes", [False, True], ids=["busy", "crash"])
async def test_another_try_begins_with_the_text_as_it_was(tmp_path: Path, crashes: bool) -> None:
    """Half an edit must not be built upon, and no human has to decide about a lost copy."""
    bench = EngineFixture(files=RunFiles(tmp_path))
    seen: list[str] = []

    def change(path: Path) -> None:
        seen.append(path.read_text())
        path.write_text("half")
        if len(seen) == 1 and not crashes:
            raise AgentTransient("busy")

    bench.agent.on("Fix", edits(change))
    if crashes:
        await bench.start_and_die(editing(), at=3)

    result = await (bench.resume if crashes else bench.start)(editing())
    await bench.close()

    assert seen == ["old\n", "old\n"]
    assert result.status is Status.COMPLETED
    assert result.state["contents"] == {NAME: "half"}


async def test_a_human_gets_the_text_and_answers_with_the_new_one(bench: EngineFixture) -> None:
    """A human has no folder to work in, so the whole text is sent both ways."""
    await bench.restart(agents={"claude": ManualAgent()})

    first = await bench.start(editing("Teh text."))
    (item,) = first.inbox
    bench.answer("The text.")
    result = await bench.resume(editing("Teh text."))

    assert "Teh text." in item.prompt
    assert "whole new text" in item.prompt
    assert result.state == {"contents": None, "text": "The text."}


def ends(text: str) -> str:
    """Returns the code that prints how the program says that it has answered."""
    return f"print({json.dumps({'type': 'result', 'subtype': 'success', 'result': text})!r})\n"


async def test_a_program_that_edits_in_silence_has_done_its_work(tmp_path: Path) -> None:
    """Coding agents are asked not to print the artifact, and some then say nothing at all."""
    body = f"open({NAME!r}, 'a').write('more\\n')\n{ends('')}"
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
        f"{ends('Done.')}"
    )
    agent = ClaudeAgent(path=program(tmp_path / "bin", "claude", body))
    bench = EngineFixture(files=RunFiles(tmp_path / "runs"), agents={"claude": agent})

    result = await bench.start(editing())
    await bench.close()

    assert result.reason == ""
    assert result.spend.calls == 2
    assert result.state["contents"] == {NAME: "old\nhalf\n"}
