import pytest

from signoff.agents.ollama import OllamaModel
from signoff.core.effects import AgentRequest, Reply
from signoff.errors import ProviderError
from signoff.profiles import AIProviderFactory, AIProviderResult
from signoff.runtime.ports import Call


def test_a_human_is_a_provider_that_leaves_the_response_to_a_file() -> None:
    provider = AIProviderFactory.create("manual")

    provider.validate()

    assert provider.generate("Plan it.", {}) is None


def test_an_agent_responds_with_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(_self: OllamaModel, request: AgentRequest, _call: Call) -> Reply:
        return Reply(f"answer to {request.prompt}")

    monkeypatch.setattr(OllamaModel, "ask", ask)

    result = AIProviderFactory.create("ollama").generate("Plan it.", {"subject": "the sea"})

    assert result == AIProviderResult(response="answer to Plan it.")


def test_an_agent_that_is_not_ready_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ProviderError, match="agent 'gemini' is not ready"):
        AIProviderFactory.create("gemini").validate()


def test_the_seed_name_of_claude_is_known() -> None:
    keys = AIProviderFactory.keys()

    assert "claude-code" in keys
    assert AIProviderFactory.create("claude-code").fs_ability == "none"
