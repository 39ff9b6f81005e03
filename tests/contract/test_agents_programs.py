from pathlib import Path

import pytest

from signoff.agents.claude import ClaudeAgent
from signoff.agents.codex import CodexAgent
from signoff.agents.command import CommandAgent
from signoff.agents.gemini import GeminiAgent
from tests.agent_suite import AgentSuite
from tests.agent_suite.answers import AgentTextTests, AnswerTests
from tests.agent_suite.faults import FaultTests, SecretTests
from tests.agent_suite.timeouts import CancelTests, TimeoutTests
from tests.contract.program_harness import KEY, KEY_ENV, CommandHarness, ProgramHarness


class NeverCutOff(AnswerTests, AgentTextTests, FaultTests, CancelTests, TimeoutTests, SecretTests):
    """The suite for programs that do not report that an answer was cut off."""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


class TestClaude(AgentSuite):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> ProgramHarness:
        return ProgramHarness(tmp_path, "claude", ClaudeAgent)


class TestCodex(NeverCutOff):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> ProgramHarness:
        return ProgramHarness(tmp_path, "codex", CodexAgent)


class TestGemini(NeverCutOff):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> ProgramHarness:
        return ProgramHarness(tmp_path, "gemini", GeminiAgent)


class TestCommand(NeverCutOff):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> ProgramHarness:
        return CommandHarness(tmp_path, "command", CommandAgent)
