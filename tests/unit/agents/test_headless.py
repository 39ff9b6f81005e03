import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from signoff.agents import headless
from signoff.agents.claude import ClaudeAgent
from signoff.agents.codex import CodexAgent
from signoff.agents.headless import READ_ONLY, Transcript
from signoff.core.effects import AgentRequest
from signoff.core.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentRefused,
    AgentTransient,
    ConfigError,
)
from signoff.runtime.extras import install_command
from signoff.runtime.owner import birth_of
from tests.unit.agents.programs import Watcher, ask, program

DONE = "say(type='result', result='Done.', total_cost_usd=0.5)\n"


def _answering(expression: str) -> str:
    return f"say(type='result', result={expression})"


def agent(folder: Path, body: str, **options: Any) -> ClaudeAgent:
    return ClaudeAgent(path=program(folder / "bin", "claude", body), **options)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace inside a project."""
    (tmp_path / "project" / ".signoff").mkdir(parents=True)
    workspace = tmp_path / "project" / "work"
    workspace.mkdir()
    (workspace / "old.txt").write_text("one\ntwo\n")
    return workspace


async def test_text_with_a_failing_exit_code_is_an_error(tmp_path: Path) -> None:
    """Output before a crash would look like an answer."""
    with pytest.raises(AgentError, match=r"exit code 1.*half way"):
        await ask(agent(tmp_path, "print('half way')\nsys.exit(1)"))


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ('{"type":"result","subtype":"succ', AgentBadOutput),
        ('[{"type":"system"', AgentBadOutput),
        ("Yes.", AgentBadOutput),
        ("", AgentBadOutput),
        ('{"a": 1}', AgentTransient),
    ],
)
async def test_output_that_is_not_the_vendors_is_an_error(
    tmp_path: Path, output: str, error: type[AgentError]
) -> None:
    """A truncated document or a warning would be reviewed as if it were the answer."""
    with pytest.raises(error, match="before its result"):
        await ask(agent(tmp_path, f"print({output!r}, end='')"))


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_output_that_is_nested_too_deeply_is_not_json(opening: str) -> None:
    """A program that repeats itself would end the run with an error of Python."""
    objects: list[dict[str, Any]] = []
    transcript = Transcript(objects.append, lambda _line: None)

    transcript.add(opening.encode() * 200_000)
    transcript.close()

    assert transcript.text == opening * 200_000
    assert objects == []


@pytest.mark.parametrize(("edit", "noted"), [(False, True), (True, False)])
def test_a_program_that_may_only_read_is_told_so(
    tmp_path: Path, workspace: Path, edit: bool, noted: bool
) -> None:
    """An edit that its sandbox denies would count as work that is missing."""
    path = program(tmp_path / "bin", "codex", "")
    request = AgentRequest("Write notes.md.", workspace=str(workspace), edit=edit)

    assert (READ_ONLY in CodexAgent(path=path).input_text(request)) is noted


async def test_output_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    """Replacement characters would silently change code."""
    with pytest.raises(AgentBadOutput, match="not UTF-8"):
        await ask(agent(tmp_path, DONE + r"sys.stdout.buffer.write(b'caf\xe9 for all')"))


async def test_endless_output_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fill the memory."""
    monkeypatch.setattr(headless, "MAX_OUTPUT_BYTES", 1_000_000)
    watcher = Watcher()

    with pytest.raises(AgentBadOutput, match="was stopped"):
        await ask(agent(tmp_path, "while True: print('again ' * 1000)"), watcher=watcher)

    assert birth_of(watcher.processes[0]["pid"]) is None


async def test_a_cancelled_agents_children_and_daemons_are_gone(tmp_path: Path) -> None:
    """Detached processes would keep editing files."""
    fork = (
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.setsid()\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(600)\n"
        "time.sleep(600)"
    )
    lines: asyncio.Queue[str] = asyncio.Queue()
    watcher = Watcher(then=lines.put_nowait)
    asked = asyncio.create_task(ask(agent(tmp_path, fork), watcher=watcher))
    daemon = int(await lines.get())

    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    assert birth_of(daemon) is None
    assert birth_of(watcher.processes[0]["pid"]) is None


async def test_a_missing_program_is_reported_with_its_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`FileNotFoundError` does not say what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(AgentBadRequest, match=r"pip .*install .*\[claude\]', or npm"):
        await ask(ClaudeAgent())

    health = await ClaudeAgent().health()
    assert not health.ready
    assert install_command("claude") in health.remedy


async def test_a_program_that_is_too_old_is_reported_with_its_version(tmp_path: Path) -> None:
    """`unknown option` does not tell users to update the program."""
    old = (
        "if '--version' in sys.argv: print('1.0.3 (Claude Code)')\n"
        "else: sys.exit(\"error: unknown option '--json-schema'\")"
    )

    with pytest.raises(AgentBadRequest, match=r"version 2\.1 or newer"):
        await ask(agent(tmp_path, old))

    health = await agent(tmp_path, old).health()
    assert (health.ready, health.detail) == (False, "claude 1.0.3 is too old")


async def test_a_program_without_a_login_is_not_ready(tmp_path: Path) -> None:
    """`signoff doctor` reports it before a run fails."""
    out = "if '--version' in sys.argv: print('2.1.300 (Claude Code)')\nelse: say(loggedIn=False)\n"

    health = await agent(tmp_path, out).health()

    assert not health.ready
    assert "/login" in health.remedy


async def test_an_empty_key_variable_is_named(tmp_path: Path) -> None:
    """The vendor's message would only be `unauthorized`."""
    with pytest.raises(AgentAuth, match="NOT_SET_ANYWHERE"):
        await ask(agent(tmp_path, "print('x')", key_env="NOT_SET_ANYWHERE"))


async def test_a_secret_in_the_output_is_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies and errors are stored in the journal and displayed."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "zq-very-secret-key")
    watcher = Watcher()
    plain = "os.environ['ANTHROPIC_API_KEY']"
    leak = _answering("'my key is ' + os.environ['ANTHROPIC_API_KEY']") + "\n"

    reply = await ask(agent(tmp_path, leak), watcher=watcher)
    with pytest.raises(AgentError) as raised:
        await ask(agent(tmp_path, f"print({plain})\nsys.exit(1)"), watcher=watcher)

    value = await ask(
        agent(tmp_path, _answering("json.dumps({'key': os.environ['ANTHROPIC_API_KEY']})")),
        schema={"type": "object"},
        watcher=watcher,
    )

    outputs = [reply.text, str(raised.value), watcher.displayed, watcher.processes, value.to_json()]
    seen = json.dumps(outputs)
    assert "zq-very" not in seen
    assert reply.text == "my key is [hidden: ANTHROPIC_API_KEY]"


async def test_a_secret_in_a_file_the_program_changed_is_an_error_that_names_the_file(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A redacted diff would be approved without anyone seeing the secret."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "zq-very-secret-key")
    leak = "open('client.py', 'w').write(os.environ['ANTHROPIC_API_KEY'])\n"

    with pytest.raises(AgentRefused, match=r"client\.py.*ANTHROPIC_API_KEY"):
        await ask(agent(tmp_path, leak + DONE), "go", workspace=str(workspace), edit=True)


async def test_unrelated_keys_do_not_reach_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's environment has many keys, and an agent needs one of them."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    monkeypatch.setenv("CHOSEN", "yes")
    show = "sorted({'AWS_SECRET_ACCESS_KEY', 'CHOSEN', 'FIXED', 'PATH'} & set(os.environ))"

    reply = await ask(
        agent(tmp_path, _answering(f"str({show})"), pass_env=["CHOSEN"], env={"FIXED": "1"})
    )

    assert reply.text == "['CHOSEN', 'FIXED', 'PATH']"


async def test_without_a_workspace_it_works_in_an_empty_folder(tmp_path: Path) -> None:
    """A request without a workspace must not depend on the current folder."""
    reply = await ask(agent(tmp_path, _answering("f'{os.listdir()} {os.getcwd()}'")))

    listing, _, cwd = reply.text.partition(" ")
    assert listing == "[]"
    assert cwd != str(Path.cwd())


async def test_a_change_outside_the_workspace_fails_the_call(
    tmp_path: Path, workspace: Path
) -> None:
    """The agent may write to its workspace only."""
    stray = "open('../elsewhere.txt', 'w').write('hi')\n"

    with pytest.raises(AgentRefused, match=r"elsewhere\.txt") as raised:
        await ask(agent(tmp_path, stray + DONE), "go", workspace=str(workspace), edit=True)

    assert raised.value.usage.usd == 0.5  # type: ignore[attr-defined]  # set by agents.answer


@pytest.mark.parametrize("copied", [False, True])
async def test_a_change_outside_may_be_noted_instead_or_is_on_a_copy(
    tmp_path: Path, workspace: Path, copied: bool
) -> None:
    """A user who edits the same project must not lose billed work."""
    options = {} if copied else {"outside": "note"}
    stray = "open('../elsewhere.txt', 'w').write('hi')\n"

    reply = await ask(
        agent(tmp_path, stray + DONE, **options),
        "go",
        workspace=str(workspace),
        edit=True,
        copied=copied,
    )

    assert reply.files == {"../elsewhere.txt": "changed outside the workspace\n"}


async def test_a_transient_error_after_an_edit_is_not_retried(
    tmp_path: Path, workspace: Path
) -> None:
    """The retry would start from files that were never reviewed."""
    busy = "sys.exit('overloaded, try again')"

    with pytest.raises(AgentTransient):
        await ask(agent(tmp_path, busy), "go", workspace=str(workspace), edit=True)
    with pytest.raises(AgentError, match=r"had changed: new\.txt") as raised:
        await ask(
            agent(tmp_path, f"open('new.txt', 'w').write('hi')\n{busy}"),
            "go",
            workspace=str(workspace),
            edit=True,
        )

    assert not isinstance(raised.value, AgentTransient)


async def test_editing_needs_a_workspace(tmp_path: Path) -> None:
    """Without one it would edit wherever signoff was started."""
    with pytest.raises(AgentBadRequest, match="workspace"):
        await ask(agent(tmp_path, DONE), "go", edit=True)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": "soon"},
        {"outside": "maybe"},
        {"args": "--fast"},
        {"pass_env": "HOME"},
        {"env": ["HOME"]},
        {"vendor_retries": "few"},
    ],
)
def test_invalid_settings_are_refused(options: dict[str, Any]) -> None:
    """The first call may be hours into a run."""
    with pytest.raises(ConfigError):
        ClaudeAgent(**options)
