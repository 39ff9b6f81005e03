"""A script in a file plays every part a real agent can."""

import json
from pathlib import Path
from typing import Any

import pytest

from signoff.runtime.ports import Agent
from signoff.testing import FileScript
from signoff.testing.agent_harness import (
    Behaviour,
    BreaksOff,
    Fault,
    Gone,
    Hangs,
    Refuses,
    Says,
)
from signoff.testing.agent_suite.answers import AnswerPromises
from signoff.testing.agent_suite.bounds import CancelPromises
from signoff.testing.agent_suite.faults import FaultPromises
from signoff.testing.agent_suite.texts import AgentTextPromises
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
        *first, last = (rule(behaviour) for behaviour in self._behaviours)
        rules = [*({**each, "times": 1} for each in first), last]
        self._file.write_text(json.dumps({"version": 1, "rules": rules}, ensure_ascii=False))
        agent = FileScript(file=self._file)
        self._agents.append(agent)
        return agent


class TestFileScript(AnswerPromises, AgentTextPromises, FaultPromises, CancelPromises):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> FileHarness:
        return FileHarness(tmp_path / "script.yaml")


def rule(behaviour: Behaviour) -> dict[str, Any]:
    match behaviour:
        case Says(text, usage):
            return {"text": text, "usage": usage and usage.to_json()}
        case BreaksOff() | Gone():
            return {"fault": "crash"}
        case Hangs():
            return {"fault": "hang"}
        case Refuses(Fault.QUOTA, int(seconds)):
            return {"fault": {"quota": f"in {seconds} s"}}
        case Refuses(fault):
            return {"fault": FAULTS[fault]}
        case _:
            raise AssertionError(f"{behaviour} cannot be written into a script")
