import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.codex import CodexAgent
from signoff.agents.structured import is_strict
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
)
from tests.unit.agents.programs import Watcher, program

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


async def test_the_last_message_of_a_completed_turn_is_the_answer(tmp_path: Path) -> None:
    """Earlier ones say what it is about to do."""
    watcher = Watcher()
    agent = codex(tmp_path, STARTED + message("I will look.") + message("All good.") + ENDED)

    reply = await agent.ask(AgentRequest("Hi"), watcher.call)

    assert reply.text == "All good."
    assert reply.usage == Usage(12, 7)
    assert reply.session == "t-1"
    assert watcher.shown == ["I will look.\n", "All good.\n"]


async def test_it_gets_model_sandbox_and_prompt(tmp_path: Path) -> None:
    """The prompt is never an argument, and answering needs no write access."""
    show = STARTED + "text = json.dumps([sys.argv[1:], prompt])\n"
    show += "say(type='item.completed', item={'type': 'agent_message', 'text': text})\n" + ENDED

    reply = await codex(tmp_path, show).ask(
        AgentRequest("tell me", system="be brief", model="gpt-5.5"), Watcher().call
    )

    argv, prompt = json.loads(reply.text)
    assert prompt == "be brief\n\ntell me"
    assert argv[argv.index("--model") + 1] == "gpt-5.5"
    assert argv[argv.index("-s") + 1] == "read-only"
    assert argv[-1] == "-"


async def test_edits_are_held_to_the_workspace_by_its_own_sandbox(tmp_path: Path) -> None:
    """By default that sandbox opens all temporary folders too."""
    place = tmp_path / "work"
    place.mkdir()
    show = STARTED + "text = json.dumps(sys.argv[1:])\n"
    show += "say(type='item.completed', item={'type': 'agent_message', 'text': text})\n" + ENDED

    reply = await codex(tmp_path, show).ask(
        AgentRequest("go", workspace=str(place), edit=True), Watcher().call
    )

    argv = json.loads(reply.text)
    assert argv[argv.index("-s") + 1] == "workspace-write"
    assert "sandbox_workspace_write.exclude_slash_tmp=true" in argv
    assert not [each for each in argv if "dangerously" in each or "danger-full" in each]


async def test_a_warning_among_the_items_is_no_failure(tmp_path: Path) -> None:
    """It warns of models it does not know, and answers all the same."""
    warning = "say(type='item.completed', item={'type': 'error', 'message': 'metadata missing'})\n"

    reply = await codex(tmp_path, STARTED + warning + message("fine") + ENDED).ask(
        AgentRequest("Hi"), Watcher().call
    )

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
async def test_a_failed_turn_is_sorted_by_who_must_act(
    tmp_path: Path, words: str, kind: type[AgentError]
) -> None:
    """Only what may pass is worth trying again."""
    body = f"{STARTED}say(type='turn.failed', error={{'message': {words!r}}})\nsys.exit(1)"

    with pytest.raises(AgentError) as raised:
        await codex(tmp_path, body).ask(AgentRequest("Hi"), Watcher().call)

    assert type(raised.value) is kind


async def test_a_used_up_plan_says_until_when(tmp_path: Path) -> None:
    """The run is parked until then."""
    words = "You've hit your usage limit. Try again at Nov 16th, 2031 12:13 AM."
    body = f"{STARTED}say(type='turn.failed', error={{'message': {words!r}}})\nsys.exit(1)"

    with pytest.raises(AgentQuota) as raised:
        await codex(tmp_path, body).ask(AgentRequest("Hi"), Watcher().call)

    assert raised.value.until == datetime(2031, 11, 16, 0, 13).astimezone()


async def test_a_rejected_patch_is_a_refusal_although_it_shows_on_standard_error_only(
    tmp_path: Path,
) -> None:
    """It exits with 0 and says that it is done."""
    reject = (
        "print('ERROR router: error=patch rejected: outside of the project', file=sys.stderr)\n"
    )

    with pytest.raises(AgentRefused, match="outside of the project"):
        await codex(tmp_path, STARTED + reject + message("Done.") + ENDED).ask(
            AgentRequest("Hi"), Watcher().call
        )


async def test_a_server_that_cannot_be_reached_is_not_waited_for(tmp_path: Path) -> None:
    """Left alone, it waits for the network for ever."""
    lost = "say(type='error', message='Reconnecting... waiting for network (Connection failed)')\n"

    with pytest.raises(AgentTransient, match="cannot reach"):
        await codex(tmp_path, STARTED + lost * 3 + "time.sleep(600)").ask(
            AgentRequest("Hi"), Watcher().call
        )


async def test_a_turn_that_never_completes_is_no_answer(tmp_path: Path) -> None:
    """Its last message may be a plan."""
    with pytest.raises(AgentTransient, match="before its result"):
        await codex(tmp_path, STARTED + message("I will look.")).ask(
            AgentRequest("Hi"), Watcher().call
        )


async def test_an_answer_that_does_not_fit_its_schema_is_refused(tmp_path: Path) -> None:
    """The vendor's schema is a wish; the reply may still not conform."""
    with pytest.raises(AgentBadOutput, match="does not match its schema") as raised:
        await codex(tmp_path, STARTED + message('{"b": 1}') + ENDED).ask(
            AgentRequest("Hi", schema=CLOSED), Watcher().call
        )

    assert raised.value.usage == Usage(12, 7)  # type: ignore[attr-defined]  # set by agents.answer


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
def test_a_schema_goes_to_the_vendor_only_when_it_takes_it(
    schema: dict[str, Any], taken: bool
) -> None:
    """With any other it refuses the whole call."""
    assert is_strict(schema) is taken


async def test_a_key_is_never_an_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are in everybody's process list, and in ours."""
    monkeypatch.setenv("MY_KEY", "sk-very-secret-indeed")
    show = STARTED + "text = json.dumps([sys.argv, os.environ['CODEX_API_KEY'][:7]])\n"
    show += "say(type='item.completed', item={'type': 'agent_message', 'text': text})\n" + ENDED

    reply = await codex(tmp_path, show, base_url="http://127.0.0.1:9/v1", key_env="MY_KEY").ask(
        AgentRequest("Hi"), Watcher().call
    )

    argv, given = json.loads(reply.text)
    assert given == "sk-very"
    assert "secret" not in " ".join(argv)
    assert 'env_key="CODEX_API_KEY"' in " ".join(argv)
