from pathlib import Path
from typing import Any

import pytest

from signoff.agents.command import CommandAgent
from signoff.core.effects import AgentRequest
from signoff.core.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentTransient,
    ConfigError,
)
from signoff.core.spend import Usage
from tests.unit.agents.programs import Watcher, ask, program


def command(folder: Path, body: str, *arguments: str, **options: Any) -> CommandAgent:
    return CommandAgent(argv=[program(folder / "bin", "tool", body), *arguments], **options)


async def test_model_and_workspace_are_filled_in(tmp_path: Path) -> None:
    """Programs take the model and the folder as arguments."""
    agent = command(tmp_path, "print(sys.argv[1:], os.getcwd())", "--m={model}", "{workspace}")

    reply = await ask(agent, "hi", model="big", workspace=str(tmp_path))

    assert reply.text == f"['--m=big', '{tmp_path}'] {tmp_path}"


async def test_a_prompt_can_go_through_a_file(tmp_path: Path) -> None:
    """Some programs read no standard input; the file is deleted after the call."""
    agent = command(
        tmp_path,
        "print(sys.argv[1], open(sys.argv[1]).read(), repr(prompt))",
        "{prompt_file}",
        prompt="file",
    )

    reply = await ask(agent, "hello there")

    path, rest = reply.text.split(" ", 1)
    assert rest == "hello there ''"
    assert not Path(path).exists()  # noqa: ASYNC240  # a look at one file


@pytest.mark.parametrize(
    ("answer", "body", "expected"),
    [
        ("last_line", "print('working'); print('the answer'); print()", "the answer"),
        ("json:choices.0.text", "say(choices=[{'text': 'found'}])", "found"),
        ("json:choices.0.text", "print('log'); say(choices=[{'text': 'found'}])", "found"),
        ("json:value", "say(value={'a': 1})", '{"a": 1}'),
        ("file:out.txt", "open('out.txt', 'w').write('from a file\\n')", "from a file"),
        ("file:out.txt", "open('out.txt', 'wb').write(b'two\\r\\nlines')", "two\r\nlines"),
    ],
)
async def test_the_answer_is_read_from_the_configured_source(
    tmp_path: Path, answer: str, body: str, expected: str
) -> None:
    """Programs print their answers in different formats."""
    reply = await ask(command(tmp_path, body, answer=answer), "hi")

    assert reply.text == expected


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        ("json:a.b", "say(a={})"),
        ("json:a.3", "say(a=[1])"),
        ("json:a", "print('{\"a\": ')"),
        ("file:out.txt", "pass"),
        ("last_line", "pass"),
    ],
)
async def test_a_missing_answer_is_an_error(tmp_path: Path, answer: str, body: str) -> None:
    """Other output must not be taken for the answer."""
    with pytest.raises(AgentBadOutput):
        await ask(command(tmp_path, body, answer=answer), "hi")


async def test_exit_codes_are_configurable(tmp_path: Path) -> None:
    """Only the program's author knows which codes are transient."""
    body = "print('words', file=sys.stderr)\nsys.exit(int(prompt))"
    agent = command(tmp_path, body, ok_codes=[0, 2], codes={3: "transient", 4: "auth"})

    with pytest.raises(AgentTransient, match="words"):
        await ask(agent, "3")
    with pytest.raises(AgentAuth):
        await ask(agent, "4")
    with pytest.raises(AgentError, match="exit code 5"):
        await ask(agent, "5")
    with pytest.raises(AgentBadOutput, match="empty"):
        await ask(agent, "2")


async def test_the_cost_is_read_from_the_configured_fields(tmp_path: Path) -> None:
    """A missing cost is unknown, not 0."""
    body = "say(text='x', bill={'in': 3, 'out': 4, 'usd': 0.5})"
    where = {"tokens_in": "bill.in", "tokens_out": "bill.out", "usd": "bill.usd"}

    reply = await ask(command(tmp_path, body, answer="json:text", usage=where), "hi")
    missing = await ask(command(tmp_path, body, answer="json:text", usage={"usd": "no.such"}), "hi")

    assert reply.usage == Usage(3, 4, 0.5)
    assert missing.usage is None


async def test_it_edits_only_if_the_settings_allow_it(tmp_path: Path) -> None:
    """No vendor's rules restrict it."""
    body = "open('new.txt', 'w').write('hi\\n'); print('done')"
    request = AgentRequest("hi", workspace=str(tmp_path / "work"), edit=True)
    (tmp_path / "work").mkdir()

    with pytest.raises(AgentBadRequest, match="edits: true"):
        await command(tmp_path, body).ask(request, Watcher().call)
    reply = await command(tmp_path, body, edits=True).ask(request, Watcher().call)

    assert list(reply.files) == ["new.txt"]


async def test_a_missing_model_for_argv_is_an_error(tmp_path: Path) -> None:
    """An empty argument could mean something else."""
    with pytest.raises(AgentBadRequest, match="needs a model"):
        await ask(command(tmp_path, "print(1)", "{model}"), "hi")


async def test_health_only_looks_for_the_program(tmp_path: Path) -> None:
    """Starting an unknown program might have side effects."""
    touched = tmp_path / "touched"

    there = await command(tmp_path, f"open({str(touched)!r}, 'w')").health()
    gone = await CommandAgent(argv=[str(tmp_path / "gone")]).health()

    assert (there.ready, gone.ready) == (True, False)
    assert not touched.exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"argv": "tool --fast"}, "list"),
        ({"argv": []}, "list"),
        ({"argv": ["tool", "{prompt}"]}, "never an argument"),
        ({"argv": ["tool"], "prompt": "file"}, "prompt_file"),
        ({"argv": ["tool"], "prompt": "argv"}, "stdin, file"),
        ({"argv": ["tool"], "answer": "xml"}, "json:PATH"),
        ({"argv": ["tool"], "answer": "file"}, "answer_file"),
        ({"argv": ["tool"], "codes": {3: "maybe"}}, "transient"),
        ({"argv": ["tool"], "usage": {"cost": "a"}}, "tokens_in"),
        ({"argv": ["tool"], "args": ["--fast"]}, "argv"),
    ],
)
def test_invalid_settings_are_refused_with_the_valid_values(
    options: dict[str, Any], word: str
) -> None:
    """An error in the middle of a run would waste the calls before it."""
    with pytest.raises(ConfigError, match=word):
        CommandAgent(**options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (False, False, None)),
        ({"edits": True}, (True, False, None)),
        ({"answer": "json:.text", "usage": {"usd": ".cost"}}, (False, False, True)),
    ],
    ids=["by default", "trusted to edit", "reports its cost"],
)
def test_its_capabilities_depend_on_its_settings(
    options: dict[str, Any], expected: tuple[bool, bool, bool | None]
) -> None:
    """One command may edit files, and another of the same kind may not."""
    can = CommandAgent(argv=["tool"], **options).capabilities

    assert (can.edits_files, can.json_schema, can.reports_price) == expected


def test_a_setting_without_a_value_means_its_default() -> None:
    """A user who comments out all entries below `codes:` leaves a null."""
    empty: dict[str, Any] = {"codes": None, "usage": None}

    agent = CommandAgent(argv=["tool"], **empty)

    assert (agent.codes, agent.usage) == ({}, {})
