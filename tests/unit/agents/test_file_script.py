import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.answer_file import read_entries
from signoff.core.effects import AgentRequest, EffectId, Reply
from signoff.core.spend import Usage
from signoff.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTimeout,
    AgentTransient,
    ConfigError,
)
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
async def test_the_first_rule_that_fits_answers(script: Write, rule: str) -> None:
    """A workflow asks many things; each gets the answer meant for it."""
    agent = script(
        f"rules:\n- {{step: other, text: no}}\n- {{{rule}, text: 'yes'}}\n- {{text: late}}"
    )

    assert (await ask(agent, model="big")).text == "yes"


@pytest.mark.parametrize(
    "rule",
    ["contains: Read", "regex: ^R", "agent: writer", "model: small", "step: s", "key: ask",
     "step: check, contains: Read"],
)  # fmt: skip
async def test_a_rule_that_does_not_fit_in_everything_does_not_answer(
    script: Write, rule: str
) -> None:
    """An answer given by a wrong rule makes a test pass for no reason."""
    agent = script(f"rules:\n- {{{rule}, text: wrong}}\ndefault: right")

    assert (await ask(agent)).text == "right"


async def test_a_rule_can_be_used_up(script: Write) -> None:
    """The first draft is bad, the second one good: that is what a loop is tested with."""
    agent = script("rules:\n- {text: bad, times: 2}\n- {text: good}")

    said = [(await ask(agent)).text for _ in range(4)]

    assert said == ["bad", "bad", "good", "good"]


async def test_a_request_without_a_rule_is_refused_with_its_prompt(script: Write) -> None:
    """The message is what the missing rule is written from."""
    agent = script("rules:\n- {contains: other, text: x}")

    with pytest.raises(AgentBadRequest, match=r"'check' to agent 'critic'.*'review'.*Write"):
        await ask(agent)


async def test_json_is_an_answer_with_a_value(script: Write) -> None:
    """Critics answer by schema, and are held to it."""
    agent = script("rules:\n- {json: {verdict: pass}, times: 2}\n- {json: {other: 1}}")

    assert (await ask(agent, schema=VERDICT)).value == {"verdict": "pass"}
    assert (await ask(agent)).value == {"verdict": "pass"}
    with pytest.raises(AgentBadOutput):
        await ask(agent, schema=VERDICT)


async def test_what_an_answer_costs_can_be_said(script: Write) -> None:
    """Budgets are tested with it; unknown is a case of its own."""
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
async def test_every_fault_can_be_played(
    script: Write, fault: str, error: type[AgentError]
) -> None:
    """What a workflow does on a bad day is seldom tried on a good one."""
    agent = script(f"rules:\n- {{fault: {fault}}}")

    with pytest.raises(error):
        await ask(agent, schema=VERDICT)


@pytest.mark.parametrize(
    "until", ["2030-01-01T00:00:00Z", "'2030-01-01T00:00:00+00:00'", "2030-01-01 00:00:00"]
)
async def test_a_quota_can_say_when_it_returns(script: Write, until: str) -> None:
    """Runs are parked until then."""
    agent = script(f"rules:\n- fault: {{quota: {until}}}")

    with pytest.raises(AgentQuota) as raised:
        await ask(agent)

    assert raised.value.until == datetime(2030, 1, 1, tzinfo=UTC)


async def test_a_quota_can_return_after_a_while(script: Write) -> None:
    """A fixed date in a test is one day in the past."""
    agent = script("rules:\n- fault: {quota: in 2 h}")

    with pytest.raises(AgentQuota) as raised:
        await ask(agent)

    assert raised.value.until is not None
    assert 7100 < (raised.value.until - datetime.now(UTC)).total_seconds() <= 7200


async def test_an_agent_can_hang(script: Write) -> None:
    """Only the engine's clock ends it."""
    agent = script("rules:\n- fault: hang")

    asking = asyncio.create_task(ask(agent))
    await asyncio.wait({asking}, timeout=0.01)

    assert not asking.done()
    asking.cancel()


async def test_files_are_changed_as_an_agent_would(script: Write, tmp_path: Path) -> None:
    """Refine steps edit, and what they changed is recorded."""
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
async def test_no_file_is_changed_that_the_request_does_not_allow(
    script: Write, tmp_path: Path, name: str, edit: bool
) -> None:
    """A test must not show a workflow that works only with a rogue agent."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    agent = script(f"rules:\n- files: {{{name}: text}}")

    with pytest.raises(AgentRefused):
        await ask(agent, workspace=str(workspace), edit=edit)

    assert list(workspace.iterdir()) == []
    assert not (tmp_path / "note.md").exists()


def test_all_problems_of_a_script_are_reported_at_once(tmp_path: Path) -> None:
    """One mistake per run of the tests is a slow way to fix a file."""
    file = tmp_path / "script.yaml"
    file.write_text(
        "version: 2\nsteps: []\nrules:\n- {contians: x, text: y}\n- {step: x}\n- 7\n"
        "- {text: a, json: {}}\n- {text: a, times: 0}\n- {regex: '(', text: a}\n"
        "- {fault: 418}\n- {fault: {quota: someday}}\n- {text: a, usage: {dollars: 1}}\n"
    )

    with pytest.raises(ConfigError) as raised:
        read_entries(file)

    said = str(raised.value)
    words = (
        "version 2;'steps';'contians';rule 2: has no answer;rule 3: is not;both;not 0;"
        "regex '(';fault '418';someday;dollars"
    )
    for word in words.split(";"):
        assert word in said


@pytest.mark.parametrize("text", ["rules: [", "- a", "rules: 7"])
async def test_a_file_that_is_no_script_says_so_when_it_is_asked(script: Write, text: str) -> None:
    """The run fails with the reason, and continues once it is fixed."""
    agent = script(text)

    with pytest.raises(AgentBadRequest, match=r"script\.yaml"):
        await ask(agent)
    assert not (await agent.health()).ready


async def test_a_delay_is_waited_for(script: Write) -> None:
    """Watching a run needs answers that take their time."""
    agent = script("rules:\n- {text: late, delay: 0.01}")

    assert (await ask(agent)).text == "late"
    assert (await agent.ask(AgentRequest("?"), CALL._replace(step="x"))).text == "late"


async def test_times_are_counted_for_each_run(script: Write) -> None:
    """The second run of a process must get the same answers as the first."""
    agent = script("rules:\n- {text: first, times: 1}\n- {text: later}")

    one = [await agent.ask(AgentRequest("?"), CALL._replace(run_key="one")) for _ in range(2)]
    two = [await agent.ask(AgentRequest("?"), CALL._replace(run_key="two")) for _ in range(2)]

    assert [reply.text for reply in one] == [reply.text for reply in two] == ["first", "later"]


async def test_what_a_run_was_answered_before_counts(script: Write) -> None:
    """After a resume, the script is another object in another process."""
    agent = script("rules:\n- {step: check, text: first, times: 1}\n- {text: later}")
    answered = EarlierCall(AgentRequest("?"), CALL)
    by_another = EarlierCall(AgentRequest("?"), CALL, answered_by="ann")

    resumed = await agent.ask(AgentRequest("?"), CALL._replace(earlier=lambda: [answered]))
    other = CALL._replace(run_key="other", earlier=lambda: [by_another])

    assert resumed.text == "later"
    assert (await agent.ask(AgentRequest("?"), other)).text == "first"


async def test_a_fallback_script_counts_only_its_own_answers(script: Write) -> None:
    """As a fallback it shares its calls with the agent that could not answer."""
    agent = script("rules:\n- {text: first, times: 1}\n- {text: later}")
    calls = [EarlierCall(AgentRequest("?"), CALL, answered_by=name) for name in ("", "other")]

    call = CALL._replace(earlier=lambda: calls).passed_to("backup")

    assert (await agent.ask(AgentRequest("?"), call)).text == "first"


async def test_a_recording_can_be_used_in_a_script(script: Write) -> None:
    """Both are files of answers: what was recorded once is edited and played by hand."""
    agent = script(
        "default: otherwise\n---\n"
        "agent: critic\nrequest: {prompt: Write.}\nreply: {text: recorded}\n"
    )

    assert [(await ask(agent)).text for _ in range(2)] == ["recorded", "otherwise"]
