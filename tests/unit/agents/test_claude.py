import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.claude import ClaudeAgent, ClaudeReader
from signoff.core.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTransient,
    ConfigError,
)
from signoff.core.spend import Usage
from tests.unit.agents.programs import Watcher, ask, program

RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "Hello",
    "session_id": "s-1",
    "stop_reason": "end_turn",
    "total_cost_usd": 0.25,
    "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3},
    "permission_denials": [],
    "num_turns": 4,
}


def claude(folder: Path, body: str, **options: Any) -> ClaudeAgent:
    return ClaudeAgent(path=program(folder, "claude", body), **options)


def printing(folder: Path, code: int = 0, **changes: Any) -> ClaudeAgent:
    line = json.dumps({**RESULT, **changes})
    return claude(folder, f"print({line!r})\nsys.exit({code})")


async def test_an_answer_comes_with_its_cost_tokens_and_session(tmp_path: Path) -> None:
    """Limits on money and tokens depend on the reported usage."""
    reply = await ask(printing(tmp_path))

    assert reply.text == "Hello"
    assert reply.usage == Usage(15, 3, 0.25, tokens_cached=5, tokens_cache_write=0, model_calls=4)
    assert (reply.session, reply.finish) == ("s-1", "end_turn")


async def test_the_prompt_goes_to_standard_input_and_the_model_by_name(tmp_path: Path) -> None:
    """Arguments are limited in length, and every user of the machine can read them."""
    agent = claude(
        tmp_path, "say(type='result', result=json.dumps([sys.argv[1:], prompt]))", model="opus"
    )

    reply = await ask(agent, "tell me", model="haiku")

    argv, prompt = json.loads(reply.text)
    assert prompt == "tell me"
    assert argv[argv.index("--model") + 1] == "haiku"
    assert "tell me" not in argv
    assert "--permission-mode" not in argv


async def test_edits_are_allowed_in_the_workspace_by_the_vendors_own_rule(tmp_path: Path) -> None:
    """Without its permission rules it could write anywhere."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    agent = claude(tmp_path, "say(type='result', result=json.dumps([sys.argv[1:], os.getcwd()]))")

    reply = await ask(agent, "go", workspace=str(workspace), edit=True)

    argv, cwd = json.loads(reply.text)
    assert argv[argv.index("--permission-mode") + 1] == "acceptEdits"
    assert cwd == str(workspace)
    assert not [each for each in argv if "dangerously" in each or "allowedTools" in each]


async def test_a_message_in_pieces_is_displayed_once(tmp_path: Path) -> None:
    """The whole message follows its pieces; an empty piece tells that it begins."""
    watcher, text = Watcher(), {"type": "text", "text": "Hello"}
    deltas = [{"type": "text_delta", "text": "Hel"}, {"type": "text_delta", "text": "lo"}]
    events = [
        {"type": "message_start"},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm"}},
        *({"type": "content_block_delta", "delta": delta} for delta in deltas),
    ]
    body = f"for event in {events!r}: say(type='stream_event', event=event)\n"
    body += f"say(type='assistant', message={{'content': [{text!r}]}})\n"
    body += "say(type='stream_event', event={'type': 'message_stop'})\n"

    await ask(claude(tmp_path, f"{body}print({json.dumps(RESULT)!r})"), watcher=watcher)

    assert watcher.displayed == ["", "Hel", "lo", "\n"]


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (401, "Invalid API key · Fix external API key", AgentAuth),
        (403, "Request not allowed", AgentAuth),
        (429, "API Error: Request rejected (429) · Number of requests too high", AgentTransient),
        (500, "API Error: 500 Internal server error", AgentTransient),
        (529, "API Error: 529 Overloaded", AgentTransient),
        (404, "There's an issue with the selected model (x)", AgentBadRequest),
        (400, "Prompt is too long", AgentBadRequest),
        (400, "Credit balance is too low", AgentQuota),
        (None, "Not logged in · Please run /login", AgentAuth),
        (None, "Request timed out", AgentTransient),
        (None, "API Error: Connection refused (ECONNREFUSED)", AgentTransient),
        (None, "an unknown message", AgentError),
    ],
)
async def test_an_api_error_reported_as_success_is_an_error(
    tmp_path: Path, status: int | None, words: str, kind: type[AgentError]
) -> None:
    """Claude reports API errors with the subtype success; they must not become answers."""
    agent = printing(tmp_path, 1, is_error=True, api_error_status=status, result=words)

    with pytest.raises(AgentError) as raised:
        await ask(agent)

    assert type(raised.value) is kind
    if kind is AgentAuth:
        assert "ANTHROPIC_API_KEY" in str(raised.value)


async def test_a_used_up_limit_has_its_reset_time(tmp_path: Path) -> None:
    """The run is parked until then, without a retry."""
    line = json.dumps({**RESULT, "is_error": True, "result": "You've hit your session limit"})
    agent = claude(
        tmp_path,
        "say(type='rate_limit_event', rate_limit_info={'status': 'rejected', "
        f"'resetsAt': 1900000000}})\nprint({line!r})\nsys.exit(1)",
    )

    with pytest.raises(AgentQuota) as raised:
        await ask(agent)

    assert raised.value.until == datetime.fromtimestamp(1900000000, UTC)


async def test_a_denied_edit_is_a_refusal_despite_exit_code_0(tmp_path: Path) -> None:
    """The run would continue with files that were never written."""
    denial = {"tool_name": "Write", "tool_input": {"file_path": "/etc/passwd"}}

    with pytest.raises(AgentRefused, match="Write /etc/passwd") as raised:
        await ask(printing(tmp_path, permission_denials=[denial]))

    assert raised.value.usage.usd == 0.25  # type: ignore[attr-defined]  # set by agents.answer


async def test_a_denied_read_does_not_fail_the_call(tmp_path: Path) -> None:
    """A reviewer that may not read one file can still review the rest."""
    denial = {"tool_name": "Read", "tool_input": {"file_path": "/etc/passwd"}}

    reply = await ask(printing(tmp_path, permission_denials=[denial]))

    assert reply.text == "Hello"


@pytest.mark.parametrize("limit", ["turns", "budget_usd", "structured_output_retries"])
async def test_stopping_at_a_limit_is_an_error(tmp_path: Path, limit: str) -> None:
    """The work is not finished."""
    with pytest.raises(AgentBadOutput, match="stopped at its limit"):
        await ask(printing(tmp_path, 1, subtype=f"error_max_{limit}", result=None))


def test_using_a_tool_that_was_not_offered_counts_as_denied() -> None:
    """It could not write, and its answer may assume that it did."""
    reader = ClaudeReader()
    outcome = {"content": [{"type": "tool_result", "content": "No such tool available: Write."}]}

    reader.read_event({"type": "user", "message": outcome})
    reader.read_event(RESULT)

    reply = reader.reply
    assert reply.denied == ("Write (not offered)",)


def test_tokens_are_summed_over_all_models() -> None:
    """Helper models are billed too."""
    reader = ClaudeReader()
    models = {
        "small": {"inputTokens": 1, "outputTokens": 1, "costUSD": 0.01},
        "large": {"inputTokens": 10, "cacheReadInputTokens": 4, "outputTokens": 5, "costUSD": 1.0},
    }

    reader.read_event({**RESULT, "modelUsage": models})

    reply = reader.reply
    assert reply.usage == Usage(
        15, 6, 0.25, "large", tokens_cached=4, tokens_cache_write=0, model_calls=4
    )


async def test_the_vendors_key_is_not_sent_to_another_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator of that server could read the key."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-mine")
    monkeypatch.setenv("OTHER_KEY", "sk-theirs")
    show = "say(type='result', result=os.environ.get('ANTHROPIC_API_KEY', 'none')[:4])"

    usual = await ask(claude(tmp_path, show))
    elsewhere = await ask(claude(tmp_path, show, base_url="http://127.0.0.1:9"))
    named = await ask(claude(tmp_path, show, base_url="http://127.0.0.1:9", key_env="OTHER_KEY"))

    assert (usual.text, elsewhere.text, named.text) == ("sk-a", "none", "sk-t")


async def test_rules_allow_more_than_reading_and_writing(tmp_path: Path) -> None:
    """A coding agent needs to run the tests."""
    show = "say(type='result', result=json.dumps(sys.argv[1:]))"

    reply = await ask(claude(tmp_path, show, allow=["Bash(pytest *)"]), workspace=str(tmp_path))

    argv = json.loads(reply.text)
    assert argv[argv.index("--tools") + 1] == "Read,Grep,Glob,Bash"
    assert argv[argv.index("--allowedTools") + 1] == "Bash(pytest *)"


@pytest.mark.parametrize("rule", ["Write", "Bash", "Edit()"])
def test_an_unlimited_rule_is_refused(rule: str) -> None:
    """`Write` without a path allows writing anywhere."""
    with pytest.raises(ConfigError, match="unlimited"):
        ClaudeAgent(allow=[rule])
