import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from signoff._extras import install_command
from signoff.agents import transcript
from signoff.agents.claude import ClaudeAgent
from signoff.core.effects import AgentRequest
from signoff.core.spend import Usage
from signoff.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentRefused,
    AgentTimeout,
    AgentTransient,
    ConfigError,
)
from signoff.runtime.owner import birth_of
from tests.patience import SkippingLoop
from tests.unit.agents.programs import Watcher, program

DONE = "say(type='result', result='Done.', total_cost_usd=0.5)\n"


def agent(folder: Path, body: str, **options: Any) -> ClaudeAgent:
    return ClaudeAgent(path=program(folder / "bin", "claude", body), **options)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace inside a project."""
    (tmp_path / "project" / ".signoff").mkdir(parents=True)
    place = tmp_path / "project" / "work"
    place.mkdir()
    (place / "old.txt").write_text("one\ntwo\n")
    return place


async def test_plain_text_is_taken_at_its_word(tmp_path: Path) -> None:
    """Wrappers and older versions print no JSON; their answers count all the same."""
    watcher = Watcher()

    reply = await agent(tmp_path, "print('Just text.')\nprint('Two lines.')").ask(
        AgentRequest("Hi"), watcher.call
    )

    assert reply.text == "Just text.\nTwo lines."
    assert reply.usage is None
    assert watcher.shown == ["Just text.\n", "Two lines.\n"]


async def test_plain_text_may_be_the_structured_answer(tmp_path: Path) -> None:
    """JSON that is not the vendor's is an answer, not a report about one."""
    schema = {"type": "object", "required": ["verdict"]}

    reply = await agent(tmp_path, "say(verdict='APPROVED')").ask(
        AgentRequest("Hi", schema=schema), Watcher().call
    )

    assert reply.value == {"verdict": "APPROVED"}


async def test_text_with_an_error_code_is_no_success(tmp_path: Path) -> None:
    """A crash after the first lines would pass for an answer."""
    with pytest.raises(AgentError, match=r"exit code 1.*half way"):
        await agent(tmp_path, "print('half way')\nsys.exit(1)").ask(
            AgentRequest("Hi"), Watcher().call
        )


@pytest.mark.parametrize("output", ["", "\\n\\n  \\n"])
async def test_an_empty_answer_is_none(tmp_path: Path, output: str) -> None:
    """An empty critique would read as a pass."""
    with pytest.raises(AgentBadOutput, match="empty"):
        await agent(tmp_path, f'print("{output}")').ask(AgentRequest("Hi"), Watcher().call)


@pytest.mark.parametrize(
    "half", ['{"type":"result","subtype":"succ', '[{"type":"system"', '{"a": 1,']
)
async def test_half_a_json_document_is_no_plain_text(tmp_path: Path, half: str) -> None:
    """Cut off in the middle, it would be reviewed as if it were complete."""
    with pytest.raises(AgentBadOutput, match="half a JSON"):
        await agent(tmp_path, f"print({half!r}, end='')").ask(AgentRequest("Hi"), Watcher().call)


async def test_an_answer_of_ten_megabytes_arrives_whole(tmp_path: Path) -> None:
    """Reading line by line with a limit per line would lose it."""
    reply = await agent(tmp_path, "say(type='result', result='x' * 10_000_000)").ask(
        AgentRequest("Hi"), Watcher().call
    )

    assert len(reply.text) == 10_000_000


async def test_a_prompt_of_a_megabyte_arrives_whole(tmp_path: Path) -> None:
    """As an argument it would not even start the program."""
    reply = await agent(tmp_path, "print(len(prompt))").ask(
        AgentRequest("ä" * 1_000_000), Watcher().call
    )

    assert reply.text == "1000000"


async def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """Replaced characters would change code without anybody noticing."""
    with pytest.raises(AgentBadOutput, match="not UTF-8"):
        await agent(tmp_path, r"sys.stdout.buffer.write(b'caf\xe9 for all')").ask(
            AgentRequest("Hi"), Watcher().call
        )


async def test_output_that_never_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would fill the memory."""
    monkeypatch.setattr(transcript, "MAX_OUTPUT_BYTES", 1_000_000)
    watcher = Watcher()

    with pytest.raises(AgentBadOutput, match="was stopped"):
        await agent(tmp_path, "while True: print('again ' * 1000)").ask(
            AgentRequest("Hi"), watcher.call
        )

    assert birth_of(watcher.processes[0]["pid"]) is None


async def test_a_program_that_hangs_is_ended_by_our_own_clock(tmp_path: Path) -> None:
    """Vendors' programs were seen to wait for ever."""
    loop = SkippingLoop()
    watcher = Watcher(then=lambda _text: loop.skip(3600))
    hangs = agent(tmp_path, "print('here', flush=True)\ntime.sleep(600)", timeout=60)

    with pytest.raises(AgentTimeout, match="within 60 seconds"):
        await hangs.ask(AgentRequest("Hi"), watcher.call)

    assert birth_of(watcher.processes[0]["pid"]) is None


async def test_a_cancelled_agents_children_and_daemons_are_gone(tmp_path: Path) -> None:
    """Detached into their own session, they would keep editing files."""
    fork = (
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.setsid()\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(600)\n"
        "time.sleep(600)"
    )
    heard: asyncio.Queue[str] = asyncio.Queue()
    watcher = Watcher(then=heard.put_nowait)
    asked = asyncio.create_task(agent(tmp_path, fork).ask(AgentRequest("Hi"), watcher.call))
    daemon = int(await heard.get())

    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    assert birth_of(daemon) is None
    assert birth_of(watcher.processes[0]["pid"]) is None


async def test_what_it_cost_is_booked_under_the_model_it_was_given(tmp_path: Path) -> None:
    """Prices go by model, and most programs do not repeat it."""
    reply = await agent(tmp_path, DONE, model="large").ask(AgentRequest("Hi"), Watcher().call)

    assert reply.usage == Usage(usd=0.5, model="large")


async def test_a_missing_program_names_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`FileNotFoundError` does not say what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(AgentBadRequest, match=r"pip install .*\[claude\]', or npm"):
        await ClaudeAgent().ask(AgentRequest("Hi"), Watcher().call)

    health = await ClaudeAgent().health()
    assert not health.ready
    assert install_command("claude") in health.remedy


async def test_a_path_in_the_settings_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    """A typing mistake there must not fall back to another program."""
    with pytest.raises(AgentBadRequest, match=r"no program at .*nowhere"):
        await ClaudeAgent(path=str(tmp_path / "nowhere")).ask(AgentRequest("Hi"), Watcher().call)


async def test_a_program_on_the_path_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to configure what is already there."""
    program(tmp_path, "claude", "print('found')")
    monkeypatch.setenv("PATH", str(tmp_path))

    reply = await ClaudeAgent().ask(AgentRequest("Hi"), Watcher().call)

    assert reply.text == "found"


async def test_a_program_that_is_too_old_is_reported_with_its_version(tmp_path: Path) -> None:
    """`unknown option` does not say that an update helps."""
    old = (
        "if '--version' in sys.argv: print('1.0.3 (Claude Code)')\n"
        "else: sys.exit(\"error: unknown option '--json-schema'\")"
    )

    with pytest.raises(AgentBadRequest, match=r"its version is 1\.0\.3.*2\.1 or newer"):
        await agent(tmp_path, old).ask(AgentRequest("Hi"), Watcher().call)

    health = await agent(tmp_path, old).health()
    assert (health.ready, health.detail) == (False, "claude 1.0.3 is too old")


async def test_a_program_without_a_login_is_not_ready(tmp_path: Path) -> None:
    """`doctor` should say so before a run does."""
    out = "if '--version' in sys.argv: print('2.1.300 (Claude Code)')\nelse: say(loggedIn=False)\n"

    health = await agent(tmp_path, out).health()

    assert not health.ready
    assert "/login" in health.remedy


async def test_a_program_that_is_there_and_logged_in_is_ready(tmp_path: Path) -> None:
    """With its version, so that reports of trouble can name it."""
    fine = "print('2.1.300 (Claude Code)') if '--version' in sys.argv else say(loggedIn=True)"

    health = await agent(tmp_path, fine).health()

    assert health.ready
    assert health.detail.startswith("claude 2.1.300 at ")


async def test_a_variable_that_should_hold_the_key_and_does_not_is_named(tmp_path: Path) -> None:
    """The vendor would only say that something was unauthorized."""
    with pytest.raises(AgentAuth, match="NOT_SET_ANYWHERE"):
        await agent(tmp_path, "print('x')", key_env="NOT_SET_ANYWHERE").ask(
            AgentRequest("Hi"), Watcher().call
        )


async def test_a_secret_the_program_prints_is_seen_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies and errors are stored in the journal and displayed."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "zq-very-secret-key")
    watcher = Watcher()
    leak = "print('my key is', os.environ['ANTHROPIC_API_KEY'])\n"

    reply = await agent(tmp_path, leak).ask(AgentRequest("Hi"), watcher.call)
    with pytest.raises(AgentError) as raised:
        await agent(tmp_path, leak + "sys.exit(1)").ask(AgentRequest("Hi"), watcher.call)

    value = await agent(tmp_path, "say(key=os.environ['ANTHROPIC_API_KEY'])").ask(
        AgentRequest("Hi", schema={"type": "object"}), watcher.call
    )

    outputs = [reply.text, str(raised.value), watcher.shown, watcher.processes, value.to_json()]
    seen = json.dumps(outputs)
    assert "zq-very" not in seen
    assert reply.text == "my key is [hidden: ANTHROPIC_API_KEY]"


async def test_a_secret_in_a_file_the_program_changed_is_an_error_that_names_the_file(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hidden in the diff, it would be approved unseen."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "zq-very-secret-key")
    leak = "open('client.py', 'w').write(os.environ['ANTHROPIC_API_KEY'])\n"

    with pytest.raises(AgentRefused, match=r"client\.py.*ANTHROPIC_API_KEY"):
        await agent(tmp_path, leak + DONE).ask(
            AgentRequest("go", workspace=str(place), edit=True), Watcher().call
        )


async def test_keys_of_others_do_not_reach_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell holds keys to many things; an agent needs one of them."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    monkeypatch.setenv("CHOSEN", "yes")
    show = "print(sorted({'AWS_SECRET_ACCESS_KEY', 'CHOSEN', 'FIXED', 'PATH'} & set(os.environ)))"

    reply = await agent(tmp_path, show, pass_env=["CHOSEN"], env={"FIXED": "1"}).ask(
        AgentRequest("Hi"), Watcher().call
    )

    assert reply.text == "['CHOSEN', 'FIXED', 'PATH']"


async def test_without_a_workspace_it_works_in_an_empty_folder(tmp_path: Path) -> None:
    """A plain question must not depend on where signoff was started."""
    reply = await agent(tmp_path, "print(os.listdir(), os.getcwd())").ask(
        AgentRequest("Hi"), Watcher().call
    )

    listing, _, cwd = reply.text.partition(" ")
    assert listing == "[]"
    assert cwd != str(Path.cwd())


async def test_what_it_changed_is_recorded_as_diffs(tmp_path: Path, place: Path) -> None:
    """A human approves what happened to the files, not what the agent says happened."""
    work = "open('old.txt', 'a').write('three\\n'); open('new.txt', 'w').write('hi\\n')\n"

    reply = await agent(tmp_path, work + DONE).ask(
        AgentRequest("go", workspace=str(place), edit=True), Watcher().call
    )

    assert sorted(reply.files) == ["new.txt", "old.txt"]
    assert "+three" in reply.files["old.txt"]
    assert reply.files["new.txt"].startswith("--- /dev/null\n+++ b/new.txt\n")


async def test_a_change_outside_the_workspace_fails_the_call(tmp_path: Path, place: Path) -> None:
    """Write access was given to the workspace and to nothing else."""
    stray = "open('../elsewhere.txt', 'w').write('hi')\n"

    with pytest.raises(AgentRefused, match=r"elsewhere\.txt") as raised:
        await agent(tmp_path, stray + DONE).ask(
            AgentRequest("go", workspace=str(place), edit=True), Watcher().call
        )

    assert raised.value.usage.usd == 0.5  # type: ignore[attr-defined]  # set by agents.answer


async def test_a_change_outside_may_be_noted_instead(tmp_path: Path, place: Path) -> None:
    """People who edit the same project meanwhile need not lose paid work."""
    stray = "open('../elsewhere.txt', 'w').write('hi')\n"

    reply = await agent(tmp_path, stray + DONE, outside="note").ask(
        AgentRequest("go", workspace=str(place), edit=True), Watcher().call
    )

    assert reply.files == {"../elsewhere.txt": "changed outside the workspace\n"}


async def test_a_call_on_its_own_copy_is_valid_whatever_else_changes(
    tmp_path: Path, place: Path
) -> None:
    """People who edit the same project meanwhile need not lose a refinement they paid for."""
    stray = "open('../elsewhere.txt', 'w').write('hi')\n"

    reply = await agent(tmp_path, stray + DONE).ask(
        AgentRequest("go", workspace=str(place), edit=True, copied=True), Watcher().call
    )

    assert reply.files == {"../elsewhere.txt": "changed outside the workspace\n"}


async def test_a_failed_edit_names_what_it_left_behind(tmp_path: Path, place: Path) -> None:
    """Half an edit is on disk without any notice."""
    half = "open('new.txt', 'w').write('hi')\nsys.exit('it broke')"

    with pytest.raises(AgentError, match=r"had changed: new\.txt"):
        await agent(tmp_path, half).ask(
            AgentRequest("go", workspace=str(place), edit=True), Watcher().call
        )


async def test_a_fault_that_may_pass_is_not_tried_again_on_half_an_edit(
    tmp_path: Path, place: Path
) -> None:
    """The retry would start from files that were never reviewed."""
    busy = "sys.exit('overloaded, try again')"

    with pytest.raises(AgentTransient):
        await agent(tmp_path, busy).ask(
            AgentRequest("go", workspace=str(place), edit=True), Watcher().call
        )
    with pytest.raises(AgentError, match=r"had changed: new\.txt") as raised:
        await agent(tmp_path, f"open('new.txt', 'w').write('hi')\n{busy}").ask(
            AgentRequest("go", workspace=str(place), edit=True), Watcher().call
        )

    assert not isinstance(raised.value, AgentTransient)


async def test_editing_needs_a_workspace(tmp_path: Path) -> None:
    """Without one it would edit wherever signoff was started."""
    with pytest.raises(AgentBadRequest, match="workspace"):
        await agent(tmp_path, DONE).ask(AgentRequest("go", edit=True), Watcher().call)


async def test_a_workspace_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The program would complain about something else."""
    with pytest.raises(AgentBadRequest, match="is not a folder"):
        await agent(tmp_path, DONE).ask(
            AgentRequest("go", workspace=str(tmp_path / "gone")), Watcher().call
        )


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
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    """Before the first call, which may be hours into a run."""
    with pytest.raises(ConfigError):
        ClaudeAgent(**options)
