from pathlib import Path

import pytest

from signoff.agents.claude import ClaudeAgent
from signoff.agents.codex import CodexAgent
from signoff.agents.command import CommandAgent
from signoff.agents.gemini import GeminiAgent
from signoff.testing import AgentSuite
from tests.contract.program_harness import (
    KEY,
    KEY_ENV,
    CommandHarness,
    NeverCutOff,
    ProgramHarness,
)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


class TestClaude(AgentSuite):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> ProgramHarness:
        return ProgramHarness(tmp_path, "claude", ClaudeAgent)


class TestCodex(AgentSuite):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> ProgramHarness:
        return NeverCutOff(tmp_path, "codex", CodexAgent)


class TestGemini(AgentSuite):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> ProgramHarness:
        return NeverCutOff(tmp_path, "gemini", GeminiAgent)


class TestCommand(AgentSuite):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> ProgramHarness:
        return CommandHarness(tmp_path, "command", CommandAgent)
