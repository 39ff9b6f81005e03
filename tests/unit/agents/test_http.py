from typing import Any

import pytest

from signoff.agents.anthropic import AnthropicModel
from signoff.agents.base import positive_seconds
from signoff.agents.http import HttpModel, Server, parse_base_url
from signoff.agents.ollama import OllamaModel, parse_ollama_host
from signoff.agents.openai import OpenAIModel
from signoff.core.errors import AgentAuth, ConfigError
from tests.agent_harness import ask


def server(address: str = "http://localhost:1", key: str | None = None) -> Server:
    return Server(address, key, is_vendor=False, timeout=1.0, connect_timeout=1.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost:8080",
        "ftp://host",
        "http://",
        "file:///etc/passwd",
        "http://[::1",
        "http://host:x",
    ],
)
def test_an_invalid_base_url_is_refused(text: str) -> None:
    """A typing error in the settings is reported before the run starts."""
    with pytest.raises(ConfigError, match="base_url"):
        parse_base_url(text)


@pytest.mark.parametrize("text", ["https://me:hunter2@host/v1", "me:hunter2@host"])
def test_a_password_in_an_address_is_refused_without_repeating_it(text: str) -> None:
    """Addresses are shown in messages and logs."""
    with pytest.raises(ConfigError) as raised:
        parse_base_url(text)

    assert "hunter2" not in str(raised.value)
    assert "key_env" in str(raised.value)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), True, "10", None])
def test_an_invalid_timeout_is_refused(seconds: float) -> None:
    """A timeout of 0 would fail every call."""
    with pytest.raises(ConfigError, match="timeout"):
        positive_seconds("timeout", seconds)


def test_a_server_does_not_show_its_key() -> None:
    """A repr appears in tracebacks."""
    assert "hunter2" not in repr(server(key="hunter2"))


@pytest.mark.parametrize(
    ("host", "bypassed"),
    [
        *((host, True) for host in ("localhost", "127.0.0.1", "127.3.2.1", "[::1]")),
        *((host, False) for host in ("api.openai.com", "10.0.0.1", "localhost.example.com")),
    ],
)
def test_proxies_are_bypassed_for_this_machine_only(host: str, bypassed: bool) -> None:
    """A proxy cannot reach it, and company networks often require one for others."""
    options = server(f"http://{host}:11434").local_options

    assert options.get("trust_env", True) is not bypassed


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("example.com", "http://example.com:11434"),
        ("example.com:8000", "http://example.com:8000"),
        (":8000", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("http://example.com:8000/", "http://example.com:8000"),
        ("https://example.com/ollama", "https://example.com/ollama"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(host: str, address: str) -> None:
    """Users set it once for all programs, often to the server's bind address."""
    assert parse_ollama_host(host) == address


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        (OpenAIModel, "structured", "tool"),
        (OpenAIModel, "base_url", "host"),
        (OpenAIModel, "connect_timeout", 0),
        (AnthropicModel, "structured", "json"),
        (AnthropicModel, "max_tokens", 0),
        (OllamaModel, "num_ctx", 0),
        (OllamaModel, "num_ctx", "8k"),
    ],
)
def test_a_wrong_option_is_named_when_the_agent_is_created(
    kind: type[HttpModel], option: str, value: Any
) -> None:
    """A wrong option must not be found in the middle of a run."""
    with pytest.raises(ConfigError, match=option):
        kind(**{option: value})


@pytest.mark.parametrize(
    ("kind", "address", "variable"),
    [
        (OpenAIModel, None, "OPENAI_API_KEY"),
        (OpenAIModel, "https://api.openai.com/v1/", "OPENAI_API_KEY"),
        (AnthropicModel, None, "ANTHROPIC_API_KEY"),
        (AnthropicModel, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    ],
)
async def test_the_vendors_address_gets_the_vendors_key(
    kind: type[HttpModel], address: str | None, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naming the default address must not change which key is used."""
    monkeypatch.delenv(variable, raising=False)

    with pytest.raises(AgentAuth, match=variable):
        await ask(kind(model="some", base_url=address))


def test_base_url_overrides_ollama_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address in the settings counts even if it is the default one."""
    monkeypatch.setenv("OLLAMA_HOST", "example.com")

    agent = OllamaModel(base_url=OllamaModel.vendor_address)

    assert agent._server().address == OllamaModel.vendor_address
