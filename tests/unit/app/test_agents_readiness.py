"""Tests of the check that the agents of a run can answer."""

import asyncio
from pathlib import Path

import pytest

from signoff.agents import auto
from signoff.agents.base import Health
from signoff.app.agents import find_not_ready
from signoff.app.settings import AgentSettings
from signoff.notation import Ask

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
