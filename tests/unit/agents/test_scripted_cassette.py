from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.agents.scripted import Mode, format_entry, read_entries
from signoff.core.effects import AgentRequest, EffectId, Reply
from signoff.core.errors import (
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTransient,
    ConfigError,
)
from signoff.core.spend import Usage
from signoff.runtime.effect_errors import usage_of
from signoff.runtime.ports import Call
from signoff.testing import CassetteAgent, ScriptedAgent

CALL = Call("run", EffectId("ask#1"), step="draft")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cassettes" / "one.yaml"


def box(file: Path, *answers: Any, mode: Mode = "auto", name: str = "claude") -> CassetteAgent:
    return CassetteAgent(file=file, agent=ScriptedAgent(answers), mode=mode, name=name)


async def ask(agent: CassetteAgent, prompt: str = "Write.", **request: Any) -> Reply:
    return await agent.ask(AgentRequest(prompt, **request), CALL)


async def test_a_cassette_contains_no_secrets(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cassettes are committed to repositories."""
    monkeypatch.setenv("MY_API_KEY", "zq-4711-very-secret")

    await ask(box(file, "It is zq-4711-very-secret."))

    assert "It is [hidden: MY_API_KEY]." in _read(file)
    assert "zq-4711" not in _read(file)


async def test_equal_requests_of_different_calls_get_their_own_answers(file: Path) -> None:
    """The order of requests in a fan-out varies from run to run."""
    calls = [Call("run", EffectId(f"critics[{n}]/ask#1")) for n in range(2)]
    first = box(file, "from 0", "from 1")
    for call in calls:
        await first.ask(AgentRequest("?"), call)

    again = box(file, mode="replay")
    texts = [(await again.ask(AgentRequest("?"), call)).text for call in reversed(calls)]

    assert texts == ["from 1", "from 0"]


async def test_a_changed_request_is_reported_with_a_diff(file: Path) -> None:
    """Without a diff, users would have to compare two prompts word by word."""
    await ask(box(file, "x", "y"), "Write a slogan.\nBe brief.\nThanks.", model="small")

    with pytest.raises(AgentBadRequest) as raised:
        await ask(box(file, mode="replay"), "Write a slogan.\nBe long.\nThanks.", model="small")

    lines = str(raised.value).splitlines()
    assert "-  Be brief." in lines
    assert "+  Be long." in lines
    assert not any(line.startswith(("-", "+")) and "small" in line for line in lines)


async def test_recording_again_replaces_only_the_entries_of_that_agent(file: Path) -> None:
    """Several agents can share a cassette."""
    await ask(box(file, "old"))
    await ask(box(file, "old", name="codex"))

    await ask(box(file, "new", mode="record"))

    entries = [(each.data["agent"], each.data["reply"]["text"]) for each in read_entries(file)]
    assert entries == [("codex", "old"), ("claude", "new")]


async def test_errors_are_recorded_too(file: Path) -> None:
    """An error that occurred once can be tested from then on."""
    error = AgentTransient("busy")
    error.usage = Usage(3, 4)  # type: ignore[attr-defined]  # as agents do
    first = box(file, error, AgentQuota("used up"))
    for _ in range(2):
        with pytest.raises((AgentTransient, AgentQuota)):
            await ask(first)

    again = box(file, mode="replay")
    with pytest.raises(AgentTransient, match="busy") as raised:
        await ask(again)
    with pytest.raises(AgentQuota, match="used up"):
        await ask(again)

    assert usage_of(raised.value) == Usage(3, 4)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("429", AgentTransient),
        ("crash", AgentTransient),
        ("half_json", AgentBadOutput),
        ("refused_edit", AgentRefused),
        ("{quota: in 5 min}", AgentQuota),
    ],
)
async def test_a_fault_can_be_added_to_a_cassette(
    file: Path, fault: str, error: type[AgentError]
) -> None:
    """Error handling is tested with recorded answers."""
    schema = {"type": "object"}
    await ask(box(file, {"verdict": "pass"}), schema=schema)
    _append(file, f"fault: {fault}\n{_read(file)}")

    again = box(file, mode="replay")
    with pytest.raises(error):
        await ask(again, schema=schema)
    reply = await ask(again, schema=schema)

    assert reply.value == {"verdict": "pass"}


async def test_an_unknown_fault_is_refused(file: Path) -> None:
    """A misspelled fault would never happen, and the test would prove nothing."""
    await ask(box(file, "Yes."))
    _append(file, "fault: 418\n")

    with pytest.raises(AgentBadRequest, match="418"):
        await ask(box(file, mode="replay"))


class Editor:
    """Edits files like a coding agent."""

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        folder = Path(request.workspace or "")
        (folder / "new.md").write_text("new\n")
        (folder / "data.bin").write_bytes(b"\xff\x00")
        (folder / "old.md").unlink()
        return Reply("Done.", files={"new.md": "+new\n"})


async def test_file_changes_are_replayed(tmp_path: Path, file: Path) -> None:
    """Later steps read the files, not the answer."""
    folders = [tmp_path / name for name in ("here", "there")]
    for folder in folders:
        folder.mkdir()
        (folder / "old.md").write_text("old\n")
    requests: list[dict[str, Any]] = [
        {"prompt": f"Edit {p}/old.md", "workspace": str(p), "edit": True} for p in folders
    ]

    recorded = await ask(CassetteAgent(file=file, agent=Editor(), name="claude"), **requests[0])
    replayed = await ask(box(file, mode="replay"), **requests[1])

    assert recorded == replayed
    assert (folders[1] / "new.md").read_text() == "new\n"
    assert (folders[1] / "data.bin").read_bytes() == b"\xff\x00"
    assert not (folders[1] / "old.md").exists()


async def test_a_damaged_cassette_is_never_replayed(file: Path) -> None:
    """A truncated answer would look complete."""
    await ask(box(file, "one"))
    _append(file, "---\nagent: [")

    agent = box(file, mode="replay")

    with pytest.raises(AgentBadRequest, match="not valid YAML"):
        await ask(agent)
    assert not (await agent.health()).ready


def test_invalid_options_are_refused(file: Path) -> None:
    """A misspelled mode might call a real agent in every test."""
    with pytest.raises(ConfigError, match="rewind"):
        box(file, mode="rewind")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ConfigError, match="missing"):
        CassetteAgent(file=file, agent="missing", agents={})


@given(text=st.text(), key=st.text(min_size=1), other=st.text())
def test_every_character_survives_a_cassette(text: str, key: str, other: str) -> None:
    """A replayed answer must equal the recorded one."""
    from ruamel.yaml import YAML

    entry = {
        "agent": "a",
        "request": {"prompt": text},
        "reply": {"text": other, "value": {key: text}},
    }

    (read,) = YAML(typ="safe", pure=True).load_all(format_entry(entry))

    assert read == entry


def _read(file: Path) -> str:
    return file.read_text("utf-8")


def _append(file: Path, text: str) -> None:
    file.write_text(_read(file) + text, "utf-8")


async def test_an_unwritable_cassette_is_detected_before_the_agent_is_called(
    tmp_path: Path,
) -> None:
    """A billed answer must not be lost because of a wrong path."""
    agent = ScriptedAgent(["billed"])

    with pytest.raises(AgentBadRequest, match="cannot be written"):
        await ask(CassetteAgent(file=_nowhere(tmp_path), agent=agent, name="claude"))

    assert agent.requests == []


def _nowhere(tmp_path: Path) -> Path:
    link = tmp_path / "tape.yaml"
    link.symlink_to(tmp_path / "gone" / "tape.yaml")
    return link
