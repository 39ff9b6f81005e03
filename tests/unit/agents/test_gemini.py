import json
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.gemini import GeminiAgent, _usage
from signoff.core.effects import AgentRequest
from signoff.core.errors import (
    AgentAuth,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTransient,
)
from signoff.core.spend import Usage
from tests.unit.agents.programs import Watcher, ask, program

INIT = """\
say(type='init', session_id='g-1', model='m')
say(type='message', role='user', content=prompt)
"""
ADVICE = (
    "Please wait and try again later. To increase your limits, request a quota increase through "
    "AI Studio, or switch to another /auth method"
)
STATS = {"models": {"m": {"total_tokens": 19, "input_tokens": 12, "output_tokens": 7}}}
END = f"say(type='result', status='success', stats={STATS!r})\n"


def gemini(folder: Path, body: str, **options: Any) -> GeminiAgent:
    return GeminiAgent(path=program(folder, "gemini", body), **options)


def piece(text: str) -> str:
    return f"say(type='message', role='assistant', content={text!r}, delta=True)\n"


async def test_the_answer_is_joined_from_its_pieces(tmp_path: Path) -> None:
    """The pieces are displayed as they arrive."""
    watcher = Watcher()

    reply = await ask(gemini(tmp_path, INIT + piece("Hel") + piece("lo") + END), watcher=watcher)

    assert reply.text == "Hello"
    assert reply.usage == Usage(12, 7, model="m")
    assert reply.session == "g-1"
    assert watcher.displayed == ["Hel", "lo"]


async def test_text_before_a_tool_call_is_not_the_answer(tmp_path: Path) -> None:
    """`I will now read the file` would end up in the draft."""
    tool = "say(type='tool_use', tool_name='read_file', tool_id='1')\n"
    tool += "say(type='tool_result', tool_id='1', status='success')\n"

    reply = await ask(gemini(tmp_path, INIT + piece("I will read.") + tool + piece("Good.") + END))

    assert reply.text == "Good."


async def test_a_model_is_always_named(tmp_path: Path) -> None:
    """Otherwise gemini makes an additional call to choose one."""
    show = INIT + "say(type='message', role='assistant', content=json.dumps(sys.argv[1:]))\n" + END

    reply = await ask(gemini(tmp_path, show))

    argv = json.loads(reply.text)
    assert argv[argv.index("--model") + 1]
    assert "--approval-mode" not in argv


async def test_it_does_not_start_itself_a_second_time(tmp_path: Path) -> None:
    """Each call would take twice as long to start, and its first process ignores SIGTERM."""
    value = "os.environ.get('GEMINI_CLI_NO_RELAUNCH')"
    show = f"{INIT}say(type='message', role='assistant', content={value})\n{END}"

    reply = await ask(gemini(tmp_path, show))

    assert reply.text == "true"


async def test_edits_are_approved_and_nothing_else(tmp_path: Path) -> None:
    """`yolo` would approve every command too."""
    show = INIT + "say(type='message', role='assistant', content=json.dumps(sys.argv[1:]))\n" + END
    workspace = tmp_path / "work"
    workspace.mkdir()

    reply = await ask(gemini(tmp_path, show), workspace=str(workspace), edit=True)

    argv = json.loads(reply.text)
    assert argv[argv.index("--approval-mode") + 1] == "auto_edit"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ('[API Error: {"error":{"code":401,"message":"API key not valid"}}]', AgentAuth),
        (f"[API Error: Resource has been exhausted]\n{ADVICE}", AgentTransient),
        (
            '[API Error: {"error":{"code":429,"message":"You exceeded your current quota"}}]',
            AgentQuota,
        ),
        ('[API Error: {"error":{"code":500,"message":"oops"}}]', AgentTransient),
        ("[API Error: models/x is not found]", AgentBadRequest),
        ("[API Error: exception TypeError: fetch failed sending request]", AgentTransient),
    ],
)
async def test_a_failure_is_classified_by_who_must_act(
    tmp_path: Path, words: str, kind: type[AgentError]
) -> None:
    """Its advice mentions quotas and logins for every kind of error."""
    end = f"say(type='result', status='error', error={{'type': 'unknown', 'message': {words!r}}})\n"

    with pytest.raises(AgentError) as raised:
        await ask(gemini(tmp_path, INIT + end + "sys.exit(1)"))

    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (145, AgentAuth),
        (41, AgentAuth),
        (173, AgentTransient),
        (244, AgentTransient),
        (148, AgentBadRequest),
        (42, AgentBadRequest),
    ],
)
async def test_the_status_is_derived_from_the_exit_code(
    tmp_path: Path, code: int, kind: type[AgentError]
) -> None:
    """Without output, the exit code is the only hint."""
    with pytest.raises(AgentError) as raised:
        await ask(gemini(tmp_path, f"sys.exit({code})"))

    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Attempt 3 failed with status 429. Retrying with backoff... Error: busy", AgentTransient),
        ("Attempt 3 failed. Retrying with backoff... Error: fetch failed", AgentTransient),
    ],
)
async def test_a_program_that_keeps_retrying_is_stopped(
    tmp_path: Path, line: str, kind: type[AgentError]
) -> None:
    """Gemini may retry for more than three minutes by itself."""
    body = f"{INIT}print({line!r}, file=sys.stderr, flush=True)\ntime.sleep(600)"

    with pytest.raises(kind):
        await ask(gemini(tmp_path, body))


@pytest.mark.parametrize(
    "why", ["Path not in workspace: Attempted path", 'Tool "write_file" not found. Did you mean']
)
async def test_a_denied_write_is_a_refusal(tmp_path: Path, why: str) -> None:
    """Gemini exits with 0 and an ordinary answer."""
    tool = "say(type='tool_use', tool_name='write_file', tool_id='1')\n"
    tool += f"say(type='tool_result', tool_id='1', status='error', output={why!r})\n"

    with pytest.raises(AgentRefused, match="write_file"):
        await ask(gemini(tmp_path, INIT + tool + piece("Done.") + END))


async def test_a_long_prompt_is_answered_in_one_document(tmp_path: Path) -> None:
    """The stream repeats the prompt, and gemini may exit before the rest is written."""
    show = "say(session_id='g', response=json.dumps(sys.argv[1:]), stats={})"

    short = await ask(gemini(tmp_path, show))
    long = await ask(gemini(tmp_path, show), "Hi " * 50_000)

    assert "stream-json" in json.loads(short.text)
    assert "stream-json" not in json.loads(long.text)


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "APPROVED", "response": '{"status": "APPROVED"}'},
        {"response": {"status": "APPROVED"}},
    ],
    ids=["other keys", "other type"],
)
async def test_json_that_is_not_its_result_document_is_an_error(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    """A part of JSON that another program has printed would be reviewed as gemini's answer."""
    with pytest.raises(AgentTransient, match="before its result"):
        await ask(gemini(tmp_path, f"say(**{answer!r})"))


async def test_a_denied_write_is_detected_without_a_stream(tmp_path: Path) -> None:
    """The result document does not mention denied tools."""
    body = (
        "print('Error executing tool write_file: Path not in workspace', file=sys.stderr)\n"
        "say(session_id='g', response='Done.', stats={})"
    )

    with pytest.raises(AgentRefused, match="Path not in workspace"):
        await ask(gemini(tmp_path, body))


async def test_a_workspace_with_settings_of_its_own_has_to_be_trusted(tmp_path: Path) -> None:
    """Such settings can start programs, and an earlier edit may have written them."""
    (tmp_path / "work" / ".gemini").mkdir(parents=True)
    request = AgentRequest("Hi", workspace=str(tmp_path / "work"))

    with pytest.raises(AgentBadRequest, match="trust_workspace"):
        await gemini(tmp_path, INIT + piece("x") + END).ask(request, Watcher().call)
    reply = await gemini(tmp_path, INIT + piece("x") + END, trust_workspace=True).ask(
        request, Watcher().call
    )

    assert reply.text == "x"


def test_missing_counts_are_unknown_not_zero() -> None:
    """A call that reports nothing must not make a run's total look known."""
    assert _usage({"models": {"m": {"api": {"totalRequests": 1}}}}) is None
    assert _usage({"models": {}}) is None
    assert _usage({"models": {"m": {"tokens": {"prompt": 3, "candidates": 2}}}}) == Usage(
        3, 2, model="m"
    )


def test_the_cached_part_of_the_prompt_is_read_from_the_stream_too() -> None:
    """Streams report it under the same name, one level higher."""
    models = {"m": {"input_tokens": 30, "output_tokens": 2, "cached": 20}}

    assert _usage({"models": models}) == Usage(30, 2, model="m", tokens_cached=20)
