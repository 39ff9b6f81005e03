"""The demo as a new user runs it, with the real small model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from signoff.agents.weights import FOLDER_VARIABLE, SMOLLM2, model_cache
from tests.acceptance.doc_blocks import sections
from tests.acceptance.doc_runner import DocRunner
from tests.real.conftest import RUNNER

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("small_model")]

PROGRAM = str(Path(sys.executable).with_name("signoff"))


def test_the_small_model_fixes_its_text_until_it_is_approved(tmp_path: Path) -> None:
    """The README promises a draft with mistakes and a loop that fixes them."""
    environment = {**os.environ, "PYTHONPATH": str(RUNNER), "SIGNOFF_CONFIG": os.devnull}

    done = subprocess.run(
        [PROGRAM, "demo", "--json"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
    )

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    open_by_round = [sum(each["open"].values()) for each in report["rounds"]]
    assert open_by_round[0] > 0
    assert open_by_round[-1] == 0
    written = [each for each in report["ledger"] if each["model"] == SMOLLM2.name]
    assert sum(each["calls"] for each in written) >= 1
    assert report["spend"]["usd"] == 0.0
    artifact = tmp_path / "signoff-demo" / ".signoff" / "runs" / "demo" / "final" / "artifact.md"
    assert "1 May" in artifact.read_text("utf-8") or "May 1" in artifact.read_text("utf-8")


def test_the_first_flow_of_the_readme_runs_on_the_small_model(tmp_path: Path) -> None:
    """It needs no key, and the tests of the documentation run it with a stand-in."""
    readme = Path(__file__).parents[2] / "README.md"
    (section,) = [s for s in sections(readme) if any("agent: local" in b.text for b in s.blocks)]
    runner = DocRunner(tmp_path)
    runner.environment |= {
        "PYTHONPATH": str(RUNNER),
        FOLDER_VARIABLE: str(model_cache(os.environ).folder),
    }

    for block in section.blocks:
        assert not runner.run(block)
