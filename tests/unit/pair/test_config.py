from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from signoff.agents.base import KnownAgent
from signoff.notation import CompileContext
from signoff.pair import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_MAX_TURNS,
    DEFAULT_MODEL_NAME,
    DEFAULT_OLLAMA_BASE_URL,
    DEFAULT_REQUEST_TIMEOUT,
    DEFAULT_TEMPERATURE,
    ConfigurationError,
    OllamaConfig,
    get_ollama_config,
)
from signoff.pair.config import ENVIRONMENT, parse_check, resolve_settings


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*ENVIRONMENT, "OLLAMA_HOST"]:
        monkeypatch.delenv(name, raising=False)


def resolved(
    preset: str = "slogan",
    section: dict[str, Any] | None = None,
    agents: dict[str, KnownAgent] | None = None,
    **params: Any,
) -> dict[str, Any]:
    context = CompileContext(
        root=Path(), settings={"pair": section or {}}, agents=agents or {}, default_agent="claude"
    )
    return resolve_settings(preset, {"task": "x", **params}, context)


def test_the_built_in_values_are_those_of_the_specification() -> None:
    """Users of the original rely on them."""
    assert get_ollama_config() == OllamaConfig(
        model_name="mistral:latest",
        max_turns=5,
        temperature=0.7,
        max_tokens=100,
        base_url="http://localhost:11434",
        request_timeout=30,
    )
    assert (DEFAULT_MODEL_NAME, DEFAULT_MAX_TURNS, DEFAULT_TEMPERATURE) == (
        "mistral:latest",
        5,
        0.7,
    )
    assert (DEFAULT_MAX_TOKENS, DEFAULT_REQUEST_TIMEOUT) == (100, 30)
    assert DEFAULT_OLLAMA_BASE_URL == "http://localhost:11434"


def test_the_environment_overrides_the_built_in_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers are configured this way."""
    values = {
        "OLLAMA_MODEL_NAME": "gemma2:2b",
        "OLLAMA_MAX_TURNS": "3",
        "OLLAMA_TEMPERATURE": "0",
        "OLLAMA_MAX_TOKENS": "50",
        "OLLAMA_BASE_URL": "http://gpu:11434/v1/",
        "OLLAMA_REQUEST_TIMEOUT": "7.5",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)

    assert get_ollama_config() == OllamaConfig(
        model_name="gemma2:2b",
        max_turns=3,
        temperature=0,
        max_tokens=50,
        base_url="http://gpu:11434/v1",
        request_timeout=7.5,
    )


def test_all_mistakes_of_the_environment_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with the variable that is wrong."""
    monkeypatch.setenv("OLLAMA_MAX_TURNS", "0")
    monkeypatch.setenv("OLLAMA_TEMPERATURE", "hot")

    with pytest.raises(ConfigurationError) as raised:
        get_ollama_config()

    assert "environment OLLAMA_MAX_TURNS" in str(raised.value)
    assert "environment OLLAMA_TEMPERATURE" in str(raised.value)


@pytest.mark.parametrize(
    "values",
    [
        {"max_turns": 0},
        {"max_turns": 11},
        {"temperature": 2.1},
        {"temperature": float("nan")},
        {"max_tokens": 0},
        {"model_name": ""},
        {"request_timeout": 0.5},
        {"request_timeout": 301},
        {"base_url": "x"},
        {"base_url": "http://user:secret@host"},
        {"models": "typo"},
    ],
)
def test_values_outside_their_limits_are_refused(values: dict[str, Any]) -> None:
    """Also when a field is assigned later."""
    with pytest.raises(ValidationError):
        OllamaConfig(**values)
    with pytest.raises((ValidationError, ValueError)):
        setattr(OllamaConfig(), *next(iter(values.items())))


def test_arguments_override_the_environment_and_that_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The closer to the call, the stronger."""
    section = {"max_turns": 2, "temperature": 0.1, "model_name": "a", "strict": True}
    monkeypatch.setenv("OLLAMA_TEMPERATURE", "0.2")
    monkeypatch.setenv("OLLAMA_MODEL_NAME", "b")

    settings = resolved(section=section, model_name="c")

    assert (settings["max_turns"], settings["strict"]) == (2, True)
    assert (settings["temperature"], settings["model_name"]) == (0.2, "c")
    writer = settings["seats"]["writer"]
    assert (writer["model"], writer["options"]["temperature"]) == ("c", 0.2)


def test_the_settings_of_the_agent_hold_for_pairs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is configured once must not be configured again."""
    agent = KnownAgent("ollama", options={"base_url": "http://gpu:1", "model": "m", "timeout": 60})
    monkeypatch.setenv("OLLAMA_HOST", "elsewhere:2")

    settings = resolved(agents={"ollama": agent})

    assert (settings["base_url"], settings["model_name"]) == ("http://gpu:1", "m")
    assert settings["request_timeout"] == 60


def test_the_variable_of_ollama_itself_is_the_weakest(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells where the server is, if nothing else does."""
    monkeypatch.setenv("OLLAMA_HOST", "gpu:9")
    assert resolved()["base_url"] == "http://gpu:9"

    monkeypatch.setenv("OLLAMA_HOST", "http://[broken")
    assert resolved()["base_url"] == DEFAULT_OLLAMA_BASE_URL


def test_a_text_gets_the_projects_agent_and_no_limit_on_tokens() -> None:
    """100 tokens are enough for a slogan only."""
    settings = resolved("text")
    assert settings["writer"] == "claude"
    assert settings["seats"]["writer"]["options"] == {}

    settings = resolved("text", writer="ollama")
    assert "num_predict" not in settings["seats"]["writer"]["options"]
    settings = resolved("text", writer="ollama", max_tokens=9)
    assert settings["seats"]["writer"]["options"]["num_predict"] == 9


def test_reviewers_of_one_agent_have_names_of_their_own() -> None:
    """The writer gets their remarks by name."""
    settings = resolved(reviewers=["claude=rhythm", "claude", "claude", "codex=rhythm"])

    seats = settings["seats"]["reviewers"]
    assert [seat["name"] for seat in seats] == ["rhythm", "claude", "claude 2", "rhythm 2"]
    assert [seat["specialty"] for seat in seats] == ["rhythm", "", "", "rhythm"]


def test_values_from_the_command_line_are_texts() -> None:
    """`signoff run pair:slogan -i max_turns=3` has nothing else."""
    settings = resolved(max_turns="3", reviewers="a, b=c", checks="words=8,lines=1", strict="yes")

    assert settings["max_turns"] == 3
    assert settings["reviewers"] == ["a", "b=c"]
    assert settings["checks"] == ["words=8", "lines=1"]
    assert settings["strict"] is True


def test_one_model_cannot_be_meant_for_several_agents() -> None:
    """It would be sent to an agent that does not have it."""
    with pytest.raises(ConfigurationError, match="ambiguous"):
        resolved(writer="claude", reviewers=["codex"], model_name="m")

    assert resolved(writer="claude", model_name="m")["seats"]["writer"]["model"] == "m"


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("words=2", "pure water", "very pure water"),
        ("words = 1", "water", "pure water"),
        ("characters=5", "water", "waters"),
        ("lines=1", "water", "pure\nwater"),
        ("contains=water", "Pure WATER!", "waterproof"),
        ("contains=pure water", "pure\n water", "pure, water"),
        ("avoids=amazing", "amazingly good", "Amazing!"),
        ("avoids=c++", "c", "c++"),
    ],
)
def test_a_check_finds_what_breaks_its_rule(rule: str, good: str, bad: str) -> None:
    """Checks take the place of a reviewer, so they must be exact."""
    check = parse_check(rule)

    assert check(good) == ""
    assert check(bad).endswith(".")


@pytest.mark.parametrize(
    "rule", ["", "words", "words=", "words=0", "words=-1", "words=two", "words=\u0662", "size=3"]
)
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    """A typo would otherwise approve everything."""
    with pytest.raises(ValueError, match=r"valid:|whole number"):
        parse_check(rule)
