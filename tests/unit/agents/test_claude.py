import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.claude import ClaudeAgent, ClaudeReader
from signoff.core.effects import AgentRequest
from signoff.core.spend import Usage
from signoff.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTransient,
    ConfigError,
)
from tests.unit.agents.programs import Watcher, program

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
}


def claude(folder: Path, body: str, **options: Any) -> ClaudeAgent:
    return ClaudeAgent(path=program(folder, "claude", body), **options)


def printing(folder: Path, code: int = 0, **changes: Any) -> ClaudeAgent:
    line = json.dumps({**RESULT, **changes})
    return claude(folder, f"print({line!r})\nsys.exit({code})")


async def test_an_answer_comes_with_its_cost_tokens_and_session(tmp_path: Path) -> None:
    """Ceilings on money and tokens count what the program reports."""
    reply = await printing(tmp_path).ask(AgentRequest("Hi"), Watcher().call)

    assert reply.text == "Hello"
    assert reply.usage == Usage(15, 3, 0.25)
    assert (reply.session, reply.finish) == ("s-1", "end_turn")


async def test_the_prompt_goes_to_standard_input_and_the_model_by_name(tmp_path: Path) -> None:
    """Arguments are short, and everybody on the machine can read them."""
    agent = claude(
        tmp_path, "say(type='result', result=json.dumps([sys.argv[1:], prompt]))", model="opus"
    )

    reply = await agent.ask(AgentRequest("tell me", model="haiku"), Watcher().call)

    argv, prompt = json.loads(reply.text)
    assert prompt == "tell me"
    assert argv[argv.index("--model") + 1] == "haiku"
    assert "tell me" not in argv
    assert "--permission-mode" not in argv


async def test_edits_are_allowed_in_the_workspace_by_the_vendors_own_rule(tmp_path: Path) -> None:
    """Switching its safety off would open the whole disk."""
    place = tmp_path / "work"
    place.mkdir()
    agent = claude(tmp_path, "say(type='result', result=json.dumps([sys.argv[1:], os.getcwd()]))")

    reply = await agent.ask(AgentRequest("go", workspace=str(place), edit=True), Watcher().call)

    argv, cwd = json.loads(reply.text)
    assert argv[argv.index("--permission-mode") + 1] == "acceptEdits"
    assert cwd == str(place)
    assert not [each for each in argv if "dangerously" in each or "allowedTools" in each]


async def test_a_structured_answer_is_the_value(tmp_path: Path) -> None:
    """The text of such an answer may be anything."""
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}

    reply = await printing(tmp_path, structured_output={"a": 3}, result="done").ask(
        AgentRequest("Hi", schema=schema), Watcher().call
    )

    assert reply.value == {"a": 3}
    assert json.loads(reply.text) == {"a": 3}


async def test_what_the_model_says_is_shown_as_it_comes(tmp_path: Path) -> None:
    """Minutes of silence look like a hang."""
    watcher = Watcher()
    line = json.dumps(RESULT)
    agent = claude(
        tmp_path,
        "say(type='assistant', message={'content': [{'type': 'text', 'text': 'thinking'}]})\n"
        f"print({line!r})",
    )

    await agent.ask(AgentRequest("Hi"), watcher.call)

    assert watcher.shown == ["thinking\n"]


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
        (None, "something nobody has seen before", AgentError),
    ],
)
async def test_a_refusal_that_calls_itself_a_success_is_none(
    tmp_path: Path, status: int | None, words: str, kind: type[AgentError]
) -> None:
    """An API error comes with subtype success; taken as an answer it would be reviewed as one."""
    agent = printing(tmp_path, 1, is_error=True, api_error_status=status, result=words)

    with pytest.raises(AgentError) as raised:
        await agent.ask(AgentRequest("Hi"), Watcher().call)

    assert type(raised.value) is kind
    if kind is AgentAuth:
        assert "ANTHROPIC_API_KEY" in str(raised.value)


async def test_a_used_up_limit_says_until_when(tmp_path: Path) -> None:
    """The run is parked until then, without counting a retry."""
    line = json.dumps({**RESULT, "is_error": True, "result": "You've hit your session limit"})
    agent = claude(
        tmp_path,
        "say(type='rate_limit_event', rate_limit_info={'status': 'rejected', "
        f"'resetsAt': 1900000000}})\nprint({line!r})\nsys.exit(1)",
    )

    with pytest.raises(AgentQuota) as raised:
        await agent.ask(AgentRequest("Hi"), Watcher().call)

    assert raised.value.until == datetime.fromtimestamp(1900000000, UTC)


async def test_a_denied_edit_is_a_refusal_although_the_program_exits_well(tmp_path: Path) -> None:
    """The run would continue with files that were never written."""
    denial = {"tool_name": "Write", "tool_input": {"file_path": "/etc/passwd"}}

    with pytest.raises(AgentRefused, match="Write /etc/passwd") as raised:
        await printing(tmp_path, permission_denials=[denial]).ask(
            AgentRequest("Hi"), Watcher().call
        )

    assert raised.value.usage.usd == 0.25  # type: ignore[attr-defined]  # set by agents.answer


async def test_a_denied_look_costs_a_fact_and_not_the_answer(tmp_path: Path) -> None:
    """Reviewers look around; a closed door is no reason to throw their review away."""
    denial = {"tool_name": "Read", "tool_input": {"file_path": "/etc/passwd"}}

    reply = await printing(tmp_path, permission_denials=[denial]).ask(
        AgentRequest("Hi"), Watcher().call
    )

    assert reply.text == "Hello"


@pytest.mark.parametrize("limit", ["turns", "budget_usd", "structured_output_retries"])
async def test_stopping_at_a_limit_is_no_answer(tmp_path: Path, limit: str) -> None:
    """Half the work done is not the work."""
    with pytest.raises(AgentBadOutput, match="stopped at its limit"):
        await printing(tmp_path, 1, subtype=f"error_max_{limit}", result=None).ask(
            AgentRequest("Hi"), Watcher().call
        )


async def test_an_answer_cut_off_by_its_length_is_none(tmp_path: Path) -> None:
    """A truncated critique must not become a clean pass."""
    with pytest.raises(AgentBadOutput, match="cut off"):
        await printing(tmp_path, stop_reason="max_tokens").ask(AgentRequest("Hi"), Watcher().call)


async def test_an_exit_with_an_error_code_is_no_success_whatever_the_json_says(
    tmp_path: Path,
) -> None:
    """The program knows of something its result does not tell."""
    with pytest.raises(AgentError, match="exit code 3"):
        await printing(tmp_path, 3).ask(AgentRequest("Hi"), Watcher().call)


async def test_output_that_breaks_off_before_the_result_is_none(tmp_path: Path) -> None:
    """Ended from outside, the program prints no result at all."""
    agent = claude(tmp_path, "say(type='system', subtype='init', session_id='s')")

    with pytest.raises(AgentTransient, match="before its result"):
        await agent.ask(AgentRequest("Hi"), Watcher().call)


def test_a_tool_it_was_not_offered_counts_as_denied() -> None:
    """It tried to write and could not, and its answer builds on that."""
    reader = ClaudeReader()
    outcome = {"content": [{"type": "tool_result", "content": "No such tool available: Write."}]}

    reader.read_event({"type": "user", "message": outcome})
    reader.read_event(RESULT)

    reply = reader.reply
    assert reply.denied == ("Write (not offered)",)


def test_the_models_together_make_up_the_tokens() -> None:
    """Helper models are paid for as well."""
    reader = ClaudeReader()
    models = {
        "small": {"inputTokens": 1, "outputTokens": 1, "costUSD": 0.01},
        "large": {"inputTokens": 10, "cacheReadInputTokens": 4, "outputTokens": 5, "costUSD": 1.0},
    }

    reader.read_event({**RESULT, "modelUsage": models})

    reply = reader.reply
    assert reply.usage == Usage(15, 6, 0.25, "large")


async def test_a_key_of_the_environment_does_not_go_to_another_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs that server would have the key."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-mine")
    monkeypatch.setenv("OTHER_KEY", "sk-theirs")
    show = "say(type='result', result=os.environ.get('ANTHROPIC_API_KEY', 'none')[:4])"

    usual = await claude(tmp_path, show).ask(AgentRequest("Hi"), Watcher().call)
    elsewhere = await claude(tmp_path, show, base_url="http://127.0.0.1:9").ask(
        AgentRequest("Hi"), Watcher().call
    )
    named = await claude(tmp_path, show, base_url="http://127.0.0.1:9", key_env="OTHER_KEY").ask(
        AgentRequest("Hi"), Watcher().call
    )

    assert (usual.text, elsewhere.text, named.text) == ("sk-a", "none", "sk-t")


async def test_more_than_reading_and_writing_is_allowed_by_rule(tmp_path: Path) -> None:
    """A coder that cannot run the tests works blind."""
    show = "say(type='result', result=json.dumps(sys.argv[1:]))"

    reply = await claude(tmp_path, show, allow=["Bash(pytest *)"]).ask(
        AgentRequest("Hi", workspace=str(tmp_path)), Watcher().call
    )

    argv = json.loads(reply.text)
    assert argv[argv.index("--tools") + 1] == "Read,Grep,Glob,Bash"
    assert argv[argv.index("--allowedTools") + 1] == "Bash(pytest *)"


@pytest.mark.parametrize("rule", ["Write", "Bash", "Edit()"])
def test_a_rule_that_would_hold_everywhere_is_refused(rule: str) -> None:
    """`Write` with no path writes anywhere on the disk."""
    with pytest.raises(ConfigError, match="unlimited"):
        ClaudeAgent(allow=[rule])
