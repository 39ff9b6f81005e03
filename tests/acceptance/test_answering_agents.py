"""The agent that answers decides the form of a request, and whether it can answer at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from signoff.testing.agent_harness import Behavior, TextReply
from tests.acceptance.cli_project import CliProject
from tests.stubs.pair_server import PairServer, served

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
