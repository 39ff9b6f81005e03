from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.scripted import read_entries
from signoff.core.effects import AgentRequest, EffectId, Reply
from signoff.core.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTimeout,
    AgentTransient,
)
from signoff.core.spend import Usage
from signoff.runtime.effect_errors import usage_of
from signoff.runtime.ports import Call, EarlierCall
from signoff.testing import FileScript

CALL = Call("run", EffectId("critics[3]/review#1"), step="check", agent="critic")
VERDICT = {"type": "object", "required": ["verdict"]}

Write = Callable[[str], FileScript]


@pytest.fixture
def script(tmp_path: Path) -> Write:
    def write(text: str) -> FileScript:
        (tmp_path / "script.yaml").write_text(text, "utf-8")
        return FileScript(file=tmp_path / "script.yaml")

    return write


async def ask(agent: FileScript, prompt: str = "Write.", **request: Any) -> Reply:
    return await agent.ask(AgentRequest(prompt, **request), CALL)


@pytest.mark.parametrize(
    "rule",
    [
        "contains: rit",
        "regex: '^W.*[.]$'",
        "agent: critic",
        "model: big",
        "step: check",
        "key: review",
        "step: check, contains: Write, model: big",
    ],
)
async def test_the_first_matching_rule_answers(script: Write, rule: str) -> None:
    """Each request of a workflow gets its own answer."""
    agent = script(
        f"rules:\n- {{step: other, text: no}}\n- {{{rule}, text: 'yes'}}\n- {{text: late}}"
    )

    assert (await ask(agent, model="big")).text == "yes"


@pytest.mark.parametrize(
    "rule",
    ["contains: Read", "regex: ^R", "agent: writer", "model: small", "step: s", "key: ask",
     "step: check, contains: Read"],
)  # fmt: skip
async def test_a_rule_answers_only_if_all_its_conditions_match(script: Write, rule: str) -> None:
    """An answer of the wrong rule would let a test pass for no reason."""
    agent = script(f"rules:\n- {{{rule}, text: wrong}}\ndefault: right")

    assert (await ask(agent)).text == "right"


async def test_a_rule_can_be_used_up(script: Write) -> None:
    """Tests of loops need a bad first answer and a good second one."""
    agent = script("rules:\n- {text: bad, times: 2}\n- {text: good}")

    texts = [(await ask(agent)).text for _ in range(4)]

    assert texts == ["bad", "bad", "good", "good"]


async def test_a_request_without_a_rule_is_refused_with_its_prompt(script: Write) -> None:
    """The message helps to write the missing rule."""
    agent = script("rules:\n- {contains: other, text: x}")

    with pytest.raises(AgentBadRequest, match=r"'check' to agent 'critic'.*'review'.*Write"):
        await ask(agent)


async def test_the_usage_of_an_answer_can_be_set(script: Write) -> None:
    """Budgets are tested with it; an unknown usage is a separate case."""
    agent = script(
        "rules:\n"
        "- {text: a, times: 1, usage: {tokens_in: 1, tokens_out: 2, usd: 0.5}}\n"
        "- {text: b, times: 1, usage: null}\n"
        "- {fault: 500, usage: {usd: 2}}"
    )

    costs = [(await ask(agent)).usage for _ in range(2)]
    with pytest.raises(AgentTransient) as raised:
        await ask(agent)

    assert costs == [Usage(1, 2, 0.5), None]
    assert usage_of(raised.value) == Usage(usd=2)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("401", AgentAuth),
        ("429", AgentTransient),
        ("500", AgentTransient),
        ("auth", AgentAuth),
        ("bad_request", AgentBadRequest),
        ("crash", AgentTransient),
        ("quota", AgentQuota),
        ("refused_edit", AgentRefused),
        ("timeout", AgentTimeout),
        ("half_json", AgentBadOutput),
        ("empty", AgentBadOutput),
    ],
)
async def test_every_fault_can_be_simulated(
    script: Write, fault: str, error: type[AgentError]
) -> None:
    """Error handling is seldom tested with real agents."""
    agent = script(f"rules:\n- {{fault: {fault}}}")

    with pytest.raises(error):
        await ask(agent, schema=VERDICT)


@pytest.mark.parametrize(
    "until", ["2030-01-01T00:00:00Z", "'2030-01-01T00:00:00+00:00'", "2030-01-01 00:00:00"]
)
async def test_a_quota_can_have_a_reset_time(script: Write, until: str) -> None:
    """The run is parked until then."""
    agent = script(f"rules:\n- fault: {{quota: {until}}}")

    with pytest.raises(AgentQuota) as raised:
        await ask(agent)

    assert raised.value.until == datetime(2030, 1, 1, tzinfo=UTC)


async def test_a_quota_can_reset_after_a_duration(script: Write) -> None:
    """A fixed date would be in the past one day."""
    agent = script("rules:\n- fault: {quota: in 2 h}")

    with pytest.raises(AgentQuota) as raised:
        await ask(agent)

    assert raised.value.until is not None
    assert 7100 < (raised.value.until - datetime.now(UTC)).total_seconds() <= 7200


async def test_files_are_edited_in_the_workspace(script: Write, tmp_path: Path) -> None:
    """Tests of refine steps need file changes."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "old.md").write_text("old\n")
    agent = script('rules:\n- files: {new/note.md: "text\\n", old.md: null}')

    reply = await ask(agent, workspace=str(workspace), edit=True)

    assert (workspace / "new/note.md").read_text() == "text\n"
    assert not (workspace / "old.md").exists()
    assert set(reply.files) == {"new/note.md", "old.md"}
    assert "+text" in reply.files["new/note.md"]
    assert reply.text == "Done."


@pytest.mark.parametrize(
    ("name", "edit"), [("note.md", False), ("../note.md", True), ("/note.md", True)]
)
async def test_edits_that_the_request_does_not_allow_are_refused(
    script: Write, tmp_path: Path, name: str, edit: bool
) -> None:
    """A workflow must not depend on an agent that breaks the rules."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    agent = script(f"rules:\n- files: {{{name}: text}}")

    with pytest.raises(AgentRefused):
        await ask(agent, workspace=str(workspace), edit=edit)

    assert list(workspace.iterdir()) == []
    assert not (tmp_path / "note.md").exists()


def test_all_problems_of_a_script_are_reported_at_once(tmp_path: Path) -> None:
    """Fixing one problem per test run is slow."""
    file = tmp_path / "script.yaml"
    file.write_text(
        "version: 2\nsteps: []\nrules:\n- {contians: x, text: y}\n- {step: x}\n- 7\n"
        "- {text: a, json: {}}\n- {text: a, times: 0}\n- {regex: '(', text: a}\n"
        "- {fault: 418}\n- {fault: {quota: someday}}\n- {text: a, usage: {dollars: 1}}\n"
    )

    with pytest.raises(AgentBadRequest) as raised:
        read_entries(file)

    message = str(raised.value)
    words = (
        "version 2;'steps';'contians';rule 2: has no answer;rule 3: is not;both;not 0;"
        "regex '(';fault '418';someday;dollars"
    )
    for word in words.split(";"):
        assert word in message


@pytest.mark.parametrize("text", ["rules: [", "- a", "rules: 7"])
async def test_an_invalid_script_fails_the_call_with_the_reason(script: Write, text: str) -> None:
    """The run can be resumed after the file is fixed."""
    agent = script(text)

    with pytest.raises(AgentBadRequest, match=r"script\.yaml"):
        await ask(agent)
    assert not (await agent.health()).ready


async def test_times_are_counted_for_each_run(script: Write) -> None:
    """A second run in the same process must get the same answers."""
    agent = script("rules:\n- {text: first, times: 1}\n- {text: later}")

    one = [await agent.ask(AgentRequest("?"), CALL._replace(run_key="one")) for _ in range(2)]
    two = [await agent.ask(AgentRequest("?"), CALL._replace(run_key="two")) for _ in range(2)]

    assert [reply.text for reply in one] == [reply.text for reply in two] == ["first", "later"]


async def test_answers_from_before_a_resume_count(script: Write) -> None:
    """After a resume, another process reads the script again."""
    agent = script("rules:\n- {step: check, text: first, times: 1}\n- {text: later}")
    answered = EarlierCall(AgentRequest("?"), CALL)
    by_another = EarlierCall(AgentRequest("?"), CALL, answered_by="ann")

    resumed = await agent.ask(AgentRequest("?"), CALL._replace(earlier=lambda: [answered]))
    other = CALL._replace(run_key="other", earlier=lambda: [by_another])

    assert resumed.text == "later"
    assert (await agent.ask(AgentRequest("?"), other)).text == "first"


async def test_a_fallback_script_counts_only_its_own_answers(script: Write) -> None:
    """A fallback shares its calls with the agent that could not answer."""
    agent = script("rules:\n- {text: first, times: 1}\n- {text: later}")
    calls = [EarlierCall(AgentRequest("?"), CALL, answered_by=name) for name in ("", "other")]

    call = CALL._replace(earlier=lambda: calls).passed_to("backup")

    assert (await agent.ask(AgentRequest("?"), call)).text == "first"


async def test_a_recording_can_be_used_in_a_script(script: Write) -> None:
    """Scripts and cassettes have the same format."""
    agent = script(
        "default: otherwise\n---\n"
        "agent: critic\nrequest: {prompt: Write.}\nreply: {text: recorded}\n"
    )

    assert [(await ask(agent)).text for _ in range(2)] == ["recorded", "otherwise"]
