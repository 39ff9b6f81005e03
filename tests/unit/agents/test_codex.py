import json
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.answer import is_strict
from signoff.agents.codex import CodexAgent
from signoff.core.errors import (
    AgentAuth,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTransient,
)
from signoff.core.spend import Usage
from tests.unit.agents.programs import ask, program

STARTED = "say(type='thread.started', thread_id='t-1'); say(type='turn.started')\n"
ENDED = "say(type='turn.completed', usage={'input_tokens': 12, 'output_tokens': 7})\n"
CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def codex(folder: Path, body: str, **options: Any) -> CodexAgent:
    return CodexAgent(path=program(folder, "codex", body), **options)


def message(text: str) -> str:
    return f"say(type='item.completed', item={{'type': 'agent_message', 'text': {text!r}}})\n"


async def test_it_gets_model_sandbox_and_prompt(tmp_path: Path) -> None:
    """The prompt is never an argument, and answering needs no write access."""
    show = STARTED + "text = json.dumps([sys.argv[1:], prompt])\n"
    show += "say(type='item.completed', item={'type': 'agent_message', 'text': text})\n" + ENDED

    reply = await ask(codex(tmp_path, show), "tell me", system="be brief", model="gpt-5.5")

    argv, prompt = json.loads(reply.text)
    assert prompt == "be brief\n\ntell me"
    assert argv[argv.index("--model") + 1] == "gpt-5.5"
    assert argv[argv.index("-s") + 1] == "read-only"
    assert argv[-1] == "-"


async def test_edits_are_limited_to_the_workspace_by_its_sandbox(tmp_path: Path) -> None:
    """By default the sandbox also allows writing to temporary folders."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    show = STARTED + "text = json.dumps(sys.argv[1:])\n"
    show += "say(type='item.completed', item={'type': 'agent_message', 'text': text})\n" + ENDED

    reply = await ask(codex(tmp_path, show), "go", workspace=str(workspace), edit=True)

    argv = json.loads(reply.text)
    assert argv[argv.index("-s") + 1] == "workspace-write"
    assert "sandbox_workspace_write.exclude_slash_tmp=true" in argv
    assert not [each for each in argv if "dangerously" in each or "danger-full" in each]


async def test_a_warning_item_is_not_a_failure(tmp_path: Path) -> None:
    """Codex warns about unknown models and still answers."""
    warning = "say(type='item.completed', item={'type': 'error', 'message': 'metadata missing'})\n"

    reply = await ask(codex(tmp_path, STARTED + warning + message("fine") + ENDED))

    assert reply.text == "fine"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("unexpected status 401 Unauthorized: Incorrect API key provided", AgentAuth),
        ("exceeded retry limit, last status: 429 Too Many Requests", AgentTransient),
        ("Quota exceeded. Check your plan and billing details.", AgentQuota),
        ("We're currently experiencing high demand", AgentTransient),
        ("unexpected status 404 Not Found: The model does not exist", AgentBadRequest),
        ('{"error": {"type": "invalid_request_error", "message": "no such"}}', AgentBadRequest),
        ("stream disconnected before completion", AgentTransient),
    ],
)
async def test_a_failed_turn_is_classified_by_who_must_act(
    tmp_path: Path, words: str, kind: type[AgentError]
) -> None:
    """Only transient errors are worth a retry."""
    body = f"{STARTED}say(type='turn.failed', error={{'message': {words!r}}})\nsys.exit(1)"

    with pytest.raises(AgentError) as raised:
        await ask(codex(tmp_path, body))

    assert type(raised.value) is kind


async def test_a_rejected_patch_on_standard_error_is_a_refusal(
    tmp_path: Path,
) -> None:
    """Codex exits with 0 and reports success."""
    reject = (
        "print('ERROR router: error=patch rejected: outside of the project', file=sys.stderr)\n"
    )

    with pytest.raises(AgentRefused, match="outside of the project"):
        await ask(codex(tmp_path, STARTED + reject + message("Done.") + ENDED))


async def test_an_unreachable_server_is_reported_after_the_retries(tmp_path: Path) -> None:
    """Codex itself would wait for the network forever."""
    lost = "say(type='error', message='Reconnecting... waiting for network (Connection failed)')\n"

    with pytest.raises(AgentTransient, match="cannot reach"):
        await ask(codex(tmp_path, STARTED + lost * 3 + "time.sleep(600)"))


@pytest.mark.parametrize(
    ("schema", "taken"),
    [
        (CLOSED, True),
        ({**CLOSED, "additionalProperties": True}, False),
        ({**CLOSED, "required": []}, False),
        ({"type": "array", "items": CLOSED}, True),
        ({"type": "array", "items": {"type": "object"}}, False),
        ({"type": "string", "minLength": 1}, False),
    ],
)
def test_only_strict_schemas_are_passed_as_an_option(schema: dict[str, Any], taken: bool) -> None:
    """The vendor refuses the call otherwise."""
    assert is_strict(schema) is taken


async def test_a_key_is_never_an_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of the machine can read arguments."""
    monkeypatch.setenv("MY_KEY", "sk-very-secret-indeed")
    show = STARTED + "text = json.dumps([sys.argv, os.environ['CODEX_API_KEY'][:7]])\n"
    show += "say(type='item.completed', item={'type': 'agent_message', 'text': text})\n" + ENDED

    reply = await ask(codex(tmp_path, show, base_url="http://127.0.0.1:9/v1", key_env="MY_KEY"))

    argv, key = json.loads(reply.text)
    assert key == "sk-very"
    assert "secret" not in " ".join(argv)
    assert 'env_key="CODEX_API_KEY"' in " ".join(argv)


async def test_the_cached_part_of_the_input_is_reported(tmp_path: Path) -> None:
    """It costs a tenth of the rest."""
    counts = {"input_tokens": 100, "cached_input_tokens": 90, "output_tokens": 7}
    counts["reasoning_output_tokens"] = 4
    ended = f"say(type='turn.completed', usage={counts!r})\n"

    reply = await ask(codex(tmp_path, STARTED + message("Good.") + ended))

    assert reply.usage == Usage(100, 7, tokens_cached=90, tokens_reasoning=4)
