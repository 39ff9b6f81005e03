import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.digest import text_digest
from signoff.core.effects import AgentRequest, CommandResult, EffectKind, Reply, WrittenFile
from signoff.core.errors import AgentBadOutput, AgentTransient, UnsafePath
from signoff.core.outcome import Status
from signoff.core.requests import Answer
from signoff.core.spend import Usage
from signoff.runtime.environment import Secrets
from signoff.runtime.performers import reply_of
from signoff.runtime.ports import Call, Notice, Progress, Retrying
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, one_step


class Shelf:
    """Keeps files in memory."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], str] = {}

    def write(self, run: str, path: str, text: str) -> None:
        if ".." in path:
            raise UnsafePath(f"{path!r} leaves the run directory")
        self.files[run, path] = text

    def folder(self, run: str) -> Path:
        return Path("/nowhere", run)


async def test_a_file_is_written_for_its_run_and_nowhere_else() -> None:
    """The handler learns the digest by which it can be recognised. Paths come from models too."""

    async def work(ctx: StepContext) -> Work:
        written = await ctx.write("final/report.md", "# Report")
        assert written.digest == text_digest("# Report")
        await ctx.write("../escape", "x")
        return OK, {}

    bench = EngineFixture(files=(shelf := Shelf()))

    result = await bench.start(one_step(work))
    await bench.close()

    assert shelf.files == {("run", "final/report.md"): "# Report"}
    assert result.status is Status.FAILED
    assert "leaves the run directory" in result.reason


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
        (EffectKind.WRITE, WrittenFile("p", "d"), {"path": "p", "digest": "d"}),
        (EffectKind.WAIT, Answer("yes", "t", "ann", 5.0), None),
    ],
)
def test_a_stored_reply_is_what_the_handler_got(kind: EffectKind, reply: Any, data: Any) -> None:
    """A replayed handler must not be able to tell."""
    if data is None:
        data = reply.to_json() if kind is EffectKind.ASK else {**_fields(reply)}

    assert reply_of(kind, data) == reply


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
    """An agent with a bug."""

    def __init__(self, does: Callable[[], Any]) -> None:
        self._does = does

    async def ask(self, _request: AgentRequest, _call: Call) -> Any:
        return self._does()


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        (lambda: "text", "agent 'hasty' answered with a str; its ask() returns a Reply"),
        (
            lambda: dict[str, str]()["key"],
            "agent 'hasty' failed: KeyError: 'key' (test_performers.py:",
        ),
    ],
)
async def test_an_agents_own_bug_is_reported_with_its_name(
    does: Callable[[], Any], reason: str
) -> None:
    """Its author would else look for it in the handler that asked."""
    bench = EngineFixture(agents={"hasty": Faulty(does)})

    async def work(ctx: StepContext) -> Work:
        return OK, {"text": (await ctx.ask("hasty", "Write.")).text}

    result = await bench.start(one_step(work))
    await bench.close()

    assert result.status is Status.FAILED
    assert result.reason.startswith(reason)


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


KEY = "zq-4711-very-secret"
HIDDEN = "[hidden: MY_API_KEY]"
SECRETS = Secrets.of({"MY_API_KEY": KEY})


class Ears:
    """Collects every notice about a run."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def notice(self, notice: Notice) -> None:
        if isinstance(notice, Progress):
            self.heard.append(notice.text)
        if isinstance(notice, Retrying):
            self.heard.append(notice.error)


async def run_with_secrets(handler: Callable[..., Any], *answers: Any, **settings: Any) -> Any:
    """Returns how a run ended, and everything that was stored or reported about it."""
    ears = Ears()
    bench = EngineFixture(secrets=SECRETS, observers=[ears], files=Shelf(), **settings)
    bench.agent.on("", *(answers or ["text"]))
    result = await bench.start(one_step(handler))
    stored = repr([*bench.events(), *bench.store.items("run"), result, ears.heard])
    await bench.close()
    return result, stored


async def test_a_secret_in_a_reply_is_hidden_before_it_is_stored() -> None:
    """An agent that reads its own environment would put the key into every copy of the run."""

    async def ask(ctx: StepContext) -> Work:
        reply = await ctx.ask("claude", "Write.", schema={"type": "object"})
        ctx.progress(f"the key is {KEY}")
        return OK, {"text": reply.text, "value": reply.value}

    answer = Reply(f"It is {KEY}.", value={"keys": [KEY], KEY: 1})
    result, stored = await run_with_secrets(ask, AgentTransient(f"bad key {KEY}"), answer)

    assert result.state == {"text": f"It is {HIDDEN}.", "value": {"keys": [HIDDEN], HIDDEN: 1}}
    assert HIDDEN in stored
    assert KEY not in stored


async def test_a_secret_in_output_of_a_command_is_hidden_before_it_is_stored() -> None:
    """`env` in a debug script is enough."""
    code = f"import sys; print({KEY!r}); print({KEY!r}, file=sys.stderr)"

    async def show(ctx: StepContext) -> Work:
        # Assembled by the program, because no one passes a key as an argument.
        argv = [sys.executable, "-c", code.replace(KEY, "zq-4711' + '-very-secret")]
        done = await ctx.command(argv)
        return OK, {"out": done.stdout, "err": done.stderr}

    result, stored = await run_with_secrets(show)

    assert result.state == {"out": f"{HIDDEN}\n", "err": f"{HIDDEN}\n"}
    assert KEY not in stored


@pytest.mark.parametrize("error", [RuntimeError, AgentBadOutput])
async def test_a_secret_in_an_error_is_hidden_before_it_is_stored(error: type[Exception]) -> None:
    """Clients like to repeat the request that failed, its headers included."""

    async def fail(ctx: StepContext) -> Work:
        raise error(f"401 for {KEY}")

    result, stored = await run_with_secrets(fail)

    assert not result.ok
    assert HIDDEN in stored
    assert KEY not in stored


@pytest.mark.parametrize("where", ["contents", "files"])
async def test_a_secret_in_a_file_an_agent_wrote_is_an_error_that_names_the_file(
    where: str,
) -> None:
    """With the secret hidden, the file would silently differ from what the agent wrote."""

    async def edit(ctx: StepContext) -> Work:
        reply = await ctx.ask("claude", "Edit.")
        return OK, {"contents": reply.contents}

    files: dict[str, Any] = {where: {"src/client.py": f"KEY = {KEY!r}"}}
    result, stored = await run_with_secrets(edit, Reply("done", **files))

    assert not result.ok
    assert "MY_API_KEY" in stored
    assert "src/client.py" in stored
    assert KEY not in stored


@pytest.mark.parametrize("kind", ["write", "prompt", "files", "env", "result", "item"])
async def test_a_secret_that_a_workflow_would_store_itself_is_refused(kind: str) -> None:
    """It would be in the journal for good, and in what an agent is sent."""

    async def item(_ctx: StepContext, text: str) -> str:
        return text + KEY[1:]

    async def work(ctx: StepContext) -> Work:
        match kind:
            case "write":
                await ctx.write("final/report.md", f"# {KEY}")
            case "prompt":
                await ctx.ask("claude", f"Use {KEY}.")
            case "files":
                await ctx.ask("claude", "Edit.", files={"final/report.md": KEY}, edit=True)
            case "env":
                await ctx.command(["true"], env={"MY_API_KEY": KEY})
            case "item":
                await ctx.map([KEY[0]], item)
        return OK, {"key": KEY}

    result, stored = await run_with_secrets(work, "text")

    assert result.status is Status.FAILED
    assert "MY_API_KEY" in result.reason
    assert ("final/report.md" in result.reason) == (kind in ("write", "files"))
    assert KEY not in stored
