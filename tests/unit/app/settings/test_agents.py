import asyncio
from pathlib import Path
from typing import Any

import pytest

from signoff.agents import auto
from signoff.agents.base import Health
from signoff.app.settings.agents import (
    agent_limits,
    build_agents,
    check_agents,
    find_not_ready,
)
from signoff.app.settings.settings import AgentSettings
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest, EffectId, Reply
from signoff.core.errors import AgentBadRequest, AgentTransient, NotAllowed
from signoff.core.outcome import Outcome, Status
from signoff.core.spend import Limits, Usage
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.notation import Ask
from signoff.runtime.engine import Engine
from signoff.runtime.ports import AgentLimits, Call, Capabilities, capabilities_of
from signoff.runtime.result import RunResult
from signoff.runtime.sub_agents import Dispatch
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock

CALL = Call("one", EffectId("ask#1"))


class Echo:
    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        return Reply(self.prefix + request.prompt)


def settings(kind: str, **options: Any) -> dict[str, AgentSettings]:
    return {"mine": AgentSettings(kind, options=options)}


@pytest.mark.parametrize(
    ("kind", "options", "complaint"),
    [
        ("telepathy", {}, "unknown kind 'telepathy'"),
        ("no_such_module:Echo", {}, "no_such_module"),
        (f"{__name__}:Missing", {}, "Missing"),
        (f"{__name__}:Echo", {"volume": 11}, "volume"),
    ],
)
async def test_an_agent_that_cannot_be_built_fails_when_it_is_asked(
    kind: str, options: dict[str, Any], complaint: str
) -> None:
    """A wrong setting of an agent that is not used must not stop a run."""
    agents = build_agents(settings(kind, **options))

    with pytest.raises(AgentBadRequest, match=complaint):
        await agents["mine"].ask(AgentRequest("hello"), CALL)


class Person:
    capabilities = Capabilities(answered_by_human=True)

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        raise AssertionError("a human is asked through the inbox")


def test_an_agent_that_is_a_human_is_recognized() -> None:
    """The engine puts its prompts into the inbox instead of calling it."""
    agents = {
        kind: build_agents(settings(f"{__name__}:{kind}"))["mine"]
        for kind in ("Person", "Echo", "Missing")
    }

    people = {kind for kind, agent in agents.items() if capabilities_of(agent).answered_by_human}

    assert people == {"Person"}


def test_only_agents_with_limits_get_limits() -> None:
    """Each limited agent has a queue, which costs time."""
    limits = agent_limits(
        {
            "free": AgentSettings("x"),
            "busy": AgentSettings("x", AgentLimits(concurrency=2)),
            "slow": AgentSettings("x", AgentLimits(rate="10/min")),
            "keen": AgentSettings("x", AgentLimits(retries=0), fallback="claude"),
        }
    )

    programs = {"claude", "codex", "gemini"}
    assert {name: limits.pop(name) for name in programs} == dict.fromkeys(programs, AgentLimits(8))
    assert limits == {
        "busy": AgentLimits(2),
        "slow": AgentLimits(rate="10/min"),
        "keen": AgentLimits(retries=1 + 4 - 1),
    }


class Busy:
    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        raise AgentTransient("busy")


class Model:
    """Reports tokens, and no money."""

    def __init__(self, *, model: str = "mystery", base_url: str = "") -> None:
        self.model = model

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        return Reply("Yes.", usage=Usage(1_000_000, 0, model=self.model))


def mine(cls: type, **settings: Any) -> AgentSettings:
    return AgentSettings(f"{__name__}:{cls.__name__}", **settings)


async def write(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    reply = await ctx.ask("writer", "Write.")
    return Outcome.OK, {"text": reply.text, "by": reply.agent}


WRITES = Workflow("writes", StepDef("write", handler=write, next={Outcome.OK: None}))


async def run(limits: Limits | None = None, **agents: AgentSettings) -> RunResult:
    engine = Engine(
        MemoryStore(),
        agents=build_agents(agents),
        agent_limits=agent_limits(agents),
        clock=FrozenClock(),
    )
    async with engine:
        return await engine.start(WRITES, limits=limits)


async def test_a_fallback_answers_after_the_attempts_of_the_agent() -> None:
    """Each attempt is counted, its cost unknown; the answer's own cost is known."""
    result = await run(
        writer=mine(Busy, limits=AgentLimits(retries=1), fallback="other"),
        other=mine(Model, price={"in": 2, "out": 4}),
    )

    assert result.state == {"text": "Yes.", "by": "other"}
    assert (result.spend.calls, result.spend.known_usd, result.spend.unknown_usd) == (3, 2.0, 2)


async def test_an_agent_without_retries_fails_at_its_first_error() -> None:
    """Users who pay per call turn retries off."""
    result = await run(writer=mine(Busy, limits=AgentLimits(retries=0)))

    assert (result.status, result.spend.calls) == (Status.FAILED, 1)


@pytest.mark.parametrize(
    ("agents", "complaint"),
    [
        ({"writer": mine(Busy, fallback="missing")}, "unknown agent 'missing'"),
        (
            {"writer": mine(Busy, fallback="b"), "b": mine(Busy, fallback="writer")},
            "writer -> b -> writer",
        ),
        ({"writer": mine(Busy, fallback="manual")}, "'manual' is a human"),
    ],
)
async def test_a_fallback_that_cannot_work_is_rejected(
    agents: dict[str, AgentSettings], complaint: str
) -> None:
    """A cycle of fallbacks would never end."""
    result = await run(None, **agents)

    assert result.status is Status.FAILED
    assert complaint in result.reason


@pytest.mark.parametrize(
    ("limits", "settings", "status"),
    [
        (Limits(usd=5), {}, Status.FAILED),
        (Limits(usd=5, calls=3), {}, Status.COMPLETED),
        (Limits(usd=5, tokens=3_000_000), {}, Status.COMPLETED),
        (Limits(usd=5), {"price": {"in": 1, "out": 1}}, Status.COMPLETED),
        (Limits(calls=3), {}, Status.COMPLETED),
    ],
)
async def test_a_limit_in_dollars_needs_a_price_or_another_limit(
    limits: Limits, settings: dict[str, Any], status: Status
) -> None:
    """An agent of unknown price would exceed it unnoticed."""
    result = await run(limits, writer=mine(Model, **settings))

    assert result.status is status
    if status is Status.FAILED:
        assert "limit of $5" in result.reason
        assert result.spend.calls == 0


async def test_a_limit_that_cannot_be_enforced_is_rejected_before_the_run_if_possible() -> None:
    """A workflow that delegates a step declares in advance which agent it asks."""
    step = StepDef("write", handler=Dispatch("writer", free_form=True), next={Outcome.OK: None})
    store = MemoryStore()

    async with Engine(store, agents=build_agents({"writer": mine(Model)})) as engine:
        with pytest.raises(NotAllowed, match="limit of"):
            await engine.start(Workflow("hands_over", step), limits=Limits(usd=5))

    assert store.rows() == []


async def test_the_price_list_does_not_apply_to_another_server() -> None:
    """A company's own server may be more expensive, or free."""
    listed = mine(Model, options={"model": "gpt-4o"})
    elsewhere = mine(Model, options={"model": "gpt-4o", "base_url": "http://localhost:1"})

    assert (await run(writer=listed)).spend.usd == 2.5
    assert (await run(writer=elsewhere)).spend.usd is None


class Silent:
    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        raise AssertionError("looking asks nothing")


class Fine(Silent):
    async def health(self) -> Health:
        return Health(True, "version 1")


class Stuck(Silent):
    async def health(self) -> Health:
        await asyncio.Event().wait()
        raise AssertionError("no code sets that event")


class Rude(Silent):
    async def health(self) -> Health:
        raise RuntimeError("what do you want?")


def mine_health(cls: type, **options: Any) -> AgentSettings:
    return AgentSettings(f"{__name__}:{cls.__name__}", options=options)


@pytest.fixture
def a_bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides what is installed on this machine, and shortens the timeout."""
    monkeypatch.setenv("PATH", "")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(auto, "HEALTH_SECONDS", 0.3)


@pytest.mark.usefixtures("a_bare_machine")
def test_every_agent_is_checked_whatever_another_one_does() -> None:
    """Users run `doctor` when something is broken."""
    found = check_agents(
        {
            "fine": mine_health(Fine),
            "stuck": mine_health(Stuck),
            "rude": mine_health(Rude),
            "silent": mine_health(Silent),
            "wrong": mine_health(Fine, volume=11),
            "unknown": AgentSettings("telepathy"),
        }
    )

    assert [name for name in found if found[name].ready][:2] == ["fine", "silent"]
    assert "within" in found["stuck"].detail
    assert "what do you want?" in found["rude"].detail
    assert "agents.wrong: " in found["wrong"].detail
    assert "telepathy" in found["unknown"].detail
    assert all(health.ready or health.remedy or health.remedies for health in found.values())


@pytest.mark.usefixtures("a_bare_machine")
def test_auto_reports_its_choice_and_checks_no_agent_twice() -> None:
    """A health check of a program takes a second or more."""
    found = check_agents({"stuck": mine_health(Stuck), "fine": mine_health(Fine)})

    assert found["auto"].ready
    assert found["auto"].detail.startswith("fine (version 1); skipped: stuck:")
    assert {"claude", "codex", "manual"} <= set(found)


# Tests of the check that the agents of a run can answer.


ABSENT = AgentSettings("command", options={"argv": ["no-such-program-anywhere"]})
ASK_SLOW = [Ask("slow")]
THERE = AgentSettings("command", options={"argv": ["sh"]})


class Shelf:
    """An agent that has one model."""

    def __init__(self, *, model: str = "small") -> None:
        self._model = model

    async def health(self) -> Health:
        return Health(self._model == "small", f"model {self._model}", "pull it")


def test_an_agent_whose_fallback_is_ready_can_be_asked(tmp_path: Path) -> None:
    """That is what a fallback is for; a circle of fallbacks must not hang the check."""
    first = AgentSettings("command", fallback="second", options=ABSENT.options)
    circle = AgentSettings("command", fallback="first", options=ABSENT.options)
    asks = [Ask("first")]

    assert find_not_ready({"first": first, "second": THERE}, asks, tmp_path) == {}
    assert list(find_not_ready({"first": first, "second": circle}, asks, tmp_path)) == ["first"]


def test_a_model_that_a_step_names_is_checked_like_one_in_the_settings(tmp_path: Path) -> None:
    """Only agents that know their models report this; nothing is paid for."""
    settings = {"shelf": AgentSettings(f"{__name__}:Shelf"), "there": THERE}

    not_ready = find_not_ready(
        settings, [Ask("shelf", "small"), Ask("shelf", "huge"), Ask("there", "any")], tmp_path
    )

    assert {name: each.detail for name, each in not_ready.items()} == {
        "shelf with the model huge": "model huge"
    }


class Slow:
    """An agent whose check does not end."""

    async def health(self) -> Health:
        await asyncio.Event().wait()
        raise AssertionError


def test_an_agent_whose_check_takes_too_long_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine must not refuse a run that would work."""
    monkeypatch.setattr(auto, "HEALTH_SECONDS", 0.0)

    assert find_not_ready({"slow": AgentSettings(f"{__name__}:Slow")}, ASK_SLOW, tmp_path) == {}


def test_a_missing_local_model_is_known_before_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The local model knows which weights are on this machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    (health,) = find_not_ready({}, [Ask("local", "no-such-model")], tmp_path).values()

    assert not health.ready
