"""A script file can simulate every behavior of a real agent."""

import json
from pathlib import Path
from typing import Any

import pytest

from signoff.runtime.ports import Agent
from signoff.testing import FileScript
from tests.agent_harness import (
    Behavior,
    BrokenReply,
    Fault,
    Hang,
    Refusal,
    TextReply,
    Unreachable,
)
from tests.agent_suite.answers import AgentTextTests, AnswerTests
from tests.agent_suite.faults import FaultTests
from tests.agent_suite.timeouts import CancelTests
from tests.contract.test_agents_scripted import ScriptedHarness

FAULTS = {
    Fault.AUTH: "401",
    Fault.QUOTA: "quota",
    Fault.BUSY: "429",
    Fault.DOWN: "500",
    Fault.NO_MODEL: "bad_request",
}


class FileHarness(ScriptedHarness):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def agent(self, *, timeout: float | None = None) -> Agent:
        *first, last = (rule(behavior) for behavior in self._behaviors)
        rules = [*({**each, "times": 1} for each in first), last]
        self._file.write_text(json.dumps({"version": 1, "rules": rules}, ensure_ascii=False))
        agent = FileScript(file=self._file)
        self._agents.append(agent)
        return agent


class TestFileScript(AnswerTests, AgentTextTests, FaultTests, CancelTests):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> FileHarness:
        return FileHarness(tmp_path / "script.yaml")


def rule(behavior: Behavior) -> dict[str, Any]:
    match behavior:
        case TextReply(text, usage):
            return {"text": text, "usage": usage and usage.to_json()}
        case BrokenReply() | Unreachable():
            return {"fault": "crash"}
        case Hang():
            return {"fault": "hang"}
        case Refusal(Fault.QUOTA, int(seconds)):
            return {"fault": {"quota": f"in {seconds} s"}}
        case Refusal(fault):
            return {"fault": FAULTS[fault]}
        case _:
            raise AssertionError(f"{behavior} cannot be written into a script")
