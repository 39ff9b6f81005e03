import json
from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Outcome, Status
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.qr import QRGate
from signoff.skills.state import STATE_DIR
from tests.unit.runtime.engine_fixture import EngineFixture

PASS = json.dumps({"status": "pass", "notes": ""})


def gated() -> Workflow:
    gate = QRGate(phase="plan-design", agent="claude")
    step = StepDef("gate", handler=gate, next={Outcome.OK: None, Outcome.FAIL: "gate"})
    return Workflow("planner", step, inputs=[STATE_DIR])


def write(folder: Path, **item: Any) -> None:
    content = {"iteration": 5, "items": [{"id": "a", "severity": "MUST", **item}]}
    (folder / "qr-plan-design.json").write_text(json.dumps(content))


def test_the_script_names_the_phase() -> None:
    """Every surface shows the whole command."""
    assert QRGate(phase="plan-code").script == "signoff.skills.quality_review --phase plan-code"


@pytest.mark.parametrize("phase", ["", "../x", "Plan", "a b", "-x"])
def test_a_phase_that_is_no_plain_name_is_refused(phase: str) -> None:
    """It becomes part of a file name and a command."""
    with pytest.raises(ValueError, match="phase"):
        QRGate(phase=phase)


async def test_a_reported_pass_without_records_goes_to_a_human(tmp_path: Path) -> None:
    """A reviewer that says "pass" and records nothing has not passed the gate."""
    bench = EngineFixture()
    write(tmp_path)
    bench.agent.on("group", PASS)

    result = await bench.start(gated(), state_dir=str(tmp_path))

    assert result.status is Status.WAITING
    bench.answer("accept")
    result = await bench.resume(gated())
    assert result.status is Status.COMPLETED
    assert result.state["gate"]["decision"] == "accept"
    await bench.close()
