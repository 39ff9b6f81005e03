"""The agent that answers decides the form of a request, and whether it can answer at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from tests.acceptance.cli_project import CliProject
from tests.agent_harness import Behavior, TextReply, TruncatedReply
from tests.stubs.pair_server import PairServer, served
from tests.unit.agents.programs import program

FLOW = """
goal: A slogan.
constraints: {inline: {short: It is short.}}
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
"""
PASS = {"overall": "PASS", "issues": []}


def answer(prompt: str) -> Behavior:
    return TextReply(json.dumps(PASS) if "Just tea." in prompt else "Just tea.")


@pytest.fixture
def server(project: CliProject) -> Iterator[PairServer]:
    with served() as server:
        server.installed = ["only:1b"]
        server.answer = answer
        project.environment |= {"OLLAMA_HOST": server.url, "PATH": os.defpath}
        project.write("slogan.yaml", FLOW)
        yield server


@pytest.mark.parametrize("agent", ["auto", "ollama"])
def test_a_critique_carries_its_schema_whoever_is_chosen(
    project: CliProject, server: PairServer, agent: str
) -> None:
    """A small model is held to the form only if the request has a schema."""
    done = project.signoff("run", "slogan.yaml", "--agent", agent)

    assert done.returncode == 0, done.stderr
    (critique,) = [body for body in server.asked if "Just tea." in str(body["messages"])]
    assert critique["format"]["type"] == "object"
    assert critique["model"] == "only:1b"


def test_several_models_are_listed_before_anything_starts(
    project: CliProject, server: PairServer
) -> None:
    server.installed = ["a:1b", "b:1b"]
    run = ("run", "slogan.yaml", "--agent", "ollama")

    messages = [project.signoff(*run, *more) for more in ((), ("--dry-run",))]
    doctor = project.signoff("doctor", "-v")

    for done in messages:
        assert done.returncode == 2
        assert "set `model:` for this agent to one of: a:1b, b:1b" in done.stderr
    assert "one of: a:1b, b:1b" in doctor.stdout
    assert not server.asked


PLAIN = """\
version: 1
agents:
  plain: {{kind: command, argv: [{program}], codes: {{9: quota}}, edits: true{fallback}}}
"""


@pytest.mark.parametrize("how", ["switch", "fallback"])
def test_who_answers_instead_is_held_to_the_form(
    project: CliProject, server: PairServer, how: str
) -> None:
    """The prompt states the form in words for an agent that cannot be held to a schema."""
    fallback = ", fallback: ollama" if how == "fallback" else ""
    settings = PLAIN.format(
        program=program(project.folder, "plain", "sys.exit(9)"), fallback=fallback
    )
    project.write(".signoff/config.yaml", settings)
    project.write("slogan.yaml", FLOW.replace("name: review}", "name: review, agent: plain}"))
    switch = ("--agent", "plain=ollama") if how == "switch" else ()

    done = project.signoff("run", "slogan.yaml", "--agent", "ollama", *switch)

    assert done.returncode == 0, done.stderr
    (critique,) = [body for body in server.asked if "Just tea." in str(body["messages"])]
    assert "Answer with one JSON object" in str(critique["messages"])
    assert critique["format"]["type"] == "object"


SETUPS = {
    "anthropic": ("anthropic", {"ANTHROPIC_API_KEY": "sk-0123456789"}, "key found, no model set"),
    "openai": ("openai", {"OPENAI_API_KEY": "sk-0123456789"}, "key found, no model set"),
    "no key": ("anthropic", {}, "ANTHROPIC_API_KEY holds no key"),
    "through auto": (
        "auto",
        {"OPENAI_API_KEY": "sk-0123456789"},
        "openai: key found, no model set",
    ),
    "no login": ("claude", {}, "claude is not logged in"),
    "too old": ("codex", {"OPENAI_API_KEY": "sk-0123456789"}, "codex 0.1.0 is too old"),
}


def test_run_dry_run_and_doctor_agree_about_what_an_agent_lacks(
    project: CliProject, subtests: pytest.Subtests
) -> None:
    """What is known before the start is refused there, with the same reason everywhere."""
    project.write("slogan.yaml", FLOW)
    old = "print('0.1') if '--version' in sys.argv else print('{\"loggedIn\": false}')"
    for name in ("claude", "codex"):
        program(project.folder / "bin", name, old)
    for title, (agent, environment, reason) in SETUPS.items():
        with subtests.test(title):
            path = f"{project.folder / 'bin'}:{os.defpath}"
            environment = {**environment, "PATH": path, "OLLAMA_HOST": "http://127.0.0.1:1"}

            run = ("run", "slogan.yaml", "--agent", agent)
            tried = [project.signoff(*run, *more, **environment) for more in ((), ("--dry-run",))]
            doctor = project.signoff("doctor", "-v", "--json", **environment)

            for done in tried:
                assert done.returncode == 2
                assert reason in done.stderr
            checks = {each["name"]: each for each in json.loads(doctor.stdout)["checks"]}
            assert not checks[agent]["ready"]
            assert reason in checks[agent]["detail"]
    assert not (project.folder / ".signoff/runs").exists()


def test_a_finding_of_an_answer_that_the_server_cut_off_stays(
    project: CliProject, server: PairServer
) -> None:
    """A model that reaches its limit of tokens has said what it has said."""
    issue = {"evidence": "Just tea.", "finding": "No coffee.", "severity": "HIGH"}
    whole = json.dumps({"overall": "FAIL", "issues": [issue, issue]})
    half = TruncatedReply(whole[: whole.rindex("finding")])

    def critic(prompt: str) -> Behavior:
        is_first = "No coffee." not in prompt
        return half if "Just tea." in prompt and is_first else answer(prompt)

    server.answer = critic
    project.write("slogan.yaml", f"{FLOW}max_iterations: 1\n")

    done = project.signoff("run", "slogan.yaml", "--agent", "ollama")

    assert done.returncode == 11, done.stderr
    assert "HIGH short artifact.md:1: No coffee." in done.stderr
