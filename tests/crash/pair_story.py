"""Two pairs: one writer and one reviewer, and three candidates with two reviewers."""

from __future__ import annotations

from typing import Any

from signoff.core.effects import AgentRequest
from signoff.errors import UnknownName
from signoff.pair import IterationSession, pair, resume_pair
from signoff.runtime.store_port import Store
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401

NAME = "slogan"
TASK = "water bottles"


async def simple(store: Store, log: EffectLog) -> None:
    """Is approved in its third turn; the second slogan is too long at first."""
    agents = {"writer": log.watch(ScriptedAgent().on("", _write))}
    agents["critic"] = log.watch(ScriptedAgent().on("", _review))
    session = await _run(store, agents, writer="writer", reviewers=["critic"])
    assert session.final_slogan == "slogan 3", session


async def crowded(store: Store, log: EffectLog) -> None:
    """Writes three candidates in each turn, which two reviewers read."""
    agents = {"writer": log.watch(ScriptedAgent().on("", _write_version))}
    agents["rhythm"] = log.watch(ScriptedAgent().on("", _review))
    agents["facts"] = log.watch(ScriptedAgent().on("", _review))
    session = await _run(
        store, agents, writer="writer", reviewers=["rhythm", "facts"], candidates=3
    )
    assert session.final_slogan == "slogan 3, version 2", session


async def _run(store: Store, agents: dict[str, Any], **options: Any) -> IterationSession:
    options |= {"preset": "slogan", "store": store, "agents": agents}
    try:
        store.row(NAME)
    except UnknownName:
        return await pair(TASK, name=NAME, similarity=1, **options)
    return await resume_pair(NAME, **options)


def _write(request: AgentRequest) -> str:
    prompt = request.prompt
    if "use at most 500" in prompt:
        return "slogan 2"
    return (
        "slogan 3" if "about slogan 2" in prompt else "x" * 600 if "about" in prompt else "slogan 1"
    )


def _write_version(request: AgentRequest) -> str:
    prompt = request.prompt
    turn = next((n + 1 for n in (2, 1) if f"about slogan {n}," in prompt), 1)
    version = prompt.partition("This is version ")[2][:1]
    return f"slogan {turn}, version {version}"


def _review(request: AgentRequest) -> str:
    slogan = request.prompt.partition("Please review this slogan: ")[2].partition("\n")[0]
    approved = slogan in ("slogan 3", "slogan 3, version 2")
    return "SHIP IT!" if approved else f"A remark about {slogan}."
