"""Critics whose agent caches prompts: one goes first, and the others read what it wrote."""

import asyncio
from pathlib import Path

import pytest

from signoff.core.effects import AgentRequest, Reply
from signoff.runtime.ports import Call
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import constraint, flow, passes, play, rules, step

NAMES = ["clear", "short", "true"]


class Critic:
    """Logs its calls and answers after every other call had time to start."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.requests: list[AgentRequest] = []

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        self.log.append("ask")
        self.requests.append(request)
        for _ in range(200):
            await asyncio.sleep(0)
        call.emit("{")
        self.log.append("answer")
        return Reply(passes())


@pytest.mark.parametrize(
    ("kind", "log"),
    [
        ("anthropic", ["ask", "answer", "ask", "ask", "answer", "answer"]),
        ("ollama", ["ask", "ask", "ask", "answer", "answer", "answer"]),
    ],
)
async def test_one_critic_goes_first_if_their_agent_caches_prompts(
    tmp_path: Path, kind: str, log: list[str]
) -> None:
    """Otherwise every critic would pay for the whole artifact, or wait for nothing."""
    critic = Critic()
    played = flow(
        [step("generate", agent="claude"), step("critique", agent="desk"), step("adjudicate")],
        [constraint(name) for name in NAMES],
        kinds={"desk": kind},
    )
    claude = ScriptedAgent().on("You are the judge", rules("APPROVED")).on("", "The sea.")

    result = await play(played, {"claude": claude, "desk": critic}, tmp_path)

    assert result.ok
    assert critic.log == log
    shared = {request.prompt[: request.shared] for request in critic.requests}
    assert len(shared) == 1
    assert "The sea." in shared.pop()
