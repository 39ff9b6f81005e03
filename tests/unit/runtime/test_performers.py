import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.digest import text_digest
from signoff.core.effects import AgentRequest, CommandResult, EffectKind, Reply, Written
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Answer
from signoff.core.spend import Usage
from signoff.errors import UnsafePath
from signoff.runtime.performers import reply_of
from signoff.runtime.ports import Call
from tests.unit.runtime.engine_fixture import EngineFixture, one_step

OK = Outcome.OK
Work = tuple[Outcome, dict[str, Any]]


class Shelf:
    """Keeps files in memory."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], str] = {}

    def write(self, run: str, path: str, text: str) -> None:
        if ".." in path:
            raise UnsafePath(f"{path!r} leaves the run directory")
        self.files[run, path] = text

    def folder(self, run: str, path: str) -> Path:
        raise AssertionError(f"nobody works on copies here: {run}/{path}")


async def write(ctx: StepContext) -> Work:
    written = await ctx.write("final/report.md", "# Report")
    return OK, {"digest": written.digest}


async def test_a_file_is_written_for_its_run() -> None:
    """And the handler learns the digest by which it can be recognised."""
    bench = EngineFixture(files=(shelf := Shelf()))

    result = await bench.start(one_step(write))
    await bench.close()

    assert shelf.files == {("run", "final/report.md"): "# Report"}
    assert result.state == {"digest": text_digest("# Report")}


async def test_without_a_place_to_write_nothing_is_begun(bench: EngineFixture) -> None:
    """The message says what is missing."""
    result = await bench.start(one_step(write))

    assert result.status is Status.FAILED
    assert "no place to write files" in result.reason
    assert len(bench.events()) == 2


async def test_a_path_that_leaves_its_place_fails_the_run() -> None:
    """Paths come from models too."""

    async def work(ctx: StepContext) -> Work:
        await ctx.write("../escape", "x")
        return OK, {}

    bench = EngineFixture(files=(shelf := Shelf()))

    result = await bench.start(one_step(work))
    await bench.close()

    assert result.status is Status.FAILED
    assert "leaves the run directory" in result.reason
    assert shelf.files == {}


@pytest.mark.parametrize(
    ("kind", "reply", "data"),
    [
        (
            EffectKind.ASK,
            Reply(
                "t",
                {"a": 1},
                Usage(1, 2, 0.5, "m"),
                "s",
                "stop",
                {"f": "changed"},
                "codex",
                {"f": "new"},
            ),
            None,
        ),
        (EffectKind.ASK, Reply("t"), None),
        (EffectKind.COMMAND, CommandResult(1, "o", "e"), {"code": 1, "stdout": "o", "stderr": "e"}),
        (EffectKind.WRITE, Written("p", "d"), {"path": "p", "digest": "d"}),
        (EffectKind.WAIT, Answer("yes", "t", "ann", 5.0), None),
    ],
)
def test_a_stored_reply_is_what_the_handler_got(kind: EffectKind, reply: Any, data: Any) -> None:
    """A replayed handler must not be able to tell."""
    if data is None:
        data = reply.to_json() if kind is EffectKind.ASK else {**_fields(reply)}

    assert reply_of(kind, data) == reply


async def test_a_role_is_played_by_the_agent_the_settings_name() -> None:
    """Workflows name roles; who plays them differs from project to project."""

    async def work(ctx: StepContext) -> Work:
        return OK, {"text": (await ctx.ask("developer", "Write.")).text}

    bench = EngineFixture(roles={"developer": "claude"})
    bench.agent.on("Write.", "hello")

    result = await bench.start(one_step(work))
    await bench.close()

    assert result.state == {"text": "hello"}


async def test_a_request_reaches_the_agent_as_it_was_made(bench: EngineFixture) -> None:
    """Model, system prompt and options are part of it."""

    async def work(ctx: StepContext) -> Work:
        await ctx.ask(
            "claude",
            "Write.",
            system="Be brief.",
            model="large",
            schema={"type": "object"},
            workspace="src",
            edit=True,
            temperature=0.2,
        )
        return OK, {}

    bench.agent.on("Write.", {"a": 1})

    await bench.start(one_step(work))

    (request,) = bench.agent.requests
    assert (request.prompt, request.system, request.model) == ("Write.", "Be brief.", "large")
    assert (request.schema, request.workspace, request.edit) == ({"type": "object"}, "src", True)
    assert request.options == {"temperature": 0.2}
    assert (bench.agent.calls[0].run, bench.agent.calls[0].effect) == ("run", "ask#1")


def _fields(value: Any) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(value)}


class Faulty:
    """An agent somebody wrote in a hurry."""

    def __init__(self, does: Callable[[], Any]) -> None:
        self._does = does

    async def ask(self, _request: AgentRequest, _call: Call) -> Any:
        return self._does()


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (lambda: "text", "agent 'hasty' answered with a str; its ask() returns a Reply"),
        (
            lambda: dict[str, str]()["key"],
            "agent 'hasty' failed: KeyError: 'key' (test_performers.py:",
        ),
    ],
)
async def test_an_agents_own_bug_is_told_in_its_name(does: Callable[[], Any], told: str) -> None:
    """Its author would else look for it in the handler that asked."""
    bench = EngineFixture(agents={"hasty": Faulty(does)})

    async def work(ctx: StepContext) -> Work:
        return OK, {"text": (await ctx.ask("hasty", "Write.")).text}

    result = await bench.start(one_step(work))
    await bench.close()

    assert result.status is Status.FAILED
    assert result.reason.startswith(told)


async def test_a_command_sees_only_ordinary_variables_and_those_it_is_meant_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a workflow runs, the keys in a user's shell are not for it."""
    for name in ("OPENAI_API_KEY", "NAMED", "CONFIGURED", "OTHER"):
        monkeypatch.setenv(name, "value")
    names = "{'PATH', 'OPENAI_API_KEY', 'NAMED', 'CONFIGURED', 'OTHER', 'FIXED'}"
    argv = [sys.executable, "-c", f"import os; print(*sorted(set(os.environ) & {names}))"]
    bench = EngineFixture(pass_env=["CONFIGURED"])

    async def show(ctx: StepContext) -> Work:
        done = await ctx.command(argv, pass_env=["NAMED"], env={"FIXED": "1"})
        return OK, {"seen": done.stdout.split()}

    result = await bench.start(one_step(show))
    await bench.close()

    assert result.state == {"seen": ["CONFIGURED", "FIXED", "NAMED", "PATH"]}
