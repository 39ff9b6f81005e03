from pathlib import Path

import pytest

from signoff.app import hand_over
from signoff.app.hand_over import WorkerCapabilities, needs_of
from signoff.app.project import Project, open_project
from signoff.app.start import plan
from signoff.testing import ScriptedAgent, WrappedStore

FLOW = """
goal: A line about the sea.
constraints: {files: [clear.yaml]}
workflow:
  - {step: generate, agent: codex}
  - {step: critique, agent: claude}
  - {step: adjudicate, agent: policy}
"""

EDITS = """
from signoff import Outcome, StepDef, Workflow

STEP = StepDef("only", "Edit", ["Edit it."], edits=True, next={Outcome.OK: None})
WORKFLOW = Workflow("edits", STEP)
"""


class Server(WrappedStore):
    """A store that other hosts use too."""

    def local_file(self) -> Path | None:
        return None


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = open_project(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "none")}, create=True)
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "edits.py").write_text(EDITS)
    (tmp_path / "clear.yaml").write_text("summary: It is clear.\n")
    return project


def needs(project: Project, target: str, **options: object) -> tuple[str, ...]:
    planned = plan(project.home.root, {}, target, {})
    return needs_of(project, planned, **options)  # type: ignore[arg-type]  # as given by the test


def test_a_run_needs_the_agents_that_it_asks(project: Project) -> None:
    """A worker without one of them would fail the run after the first steps are paid for."""
    with project:
        plain = needs(project, "flow.yaml")
        switched = needs(project, "flow.yaml", switch={"claude": "gemini"}, labels=["gpu"])

    assert plain == ("agent:claude", "agent:codex")
    assert switched == ("agent:codex", "agent:gemini", "gpu")


def test_with_a_shared_store_a_run_also_needs_its_folder(project: Project) -> None:
    """A worker of another project would not find the workflow."""
    with project:
        project.store = Server(project.store)

        assert f"folder:{project.home.root}" in needs(project, "flow.yaml")
        assert not any(each.startswith("host:") for each in needs(project, "flow.yaml"))
        assert any(each.startswith("host:") for each in needs(project, "edits.py"))


def test_a_worker_can_do_what_its_agents_are_ready_for(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown agent is no capability, and an agent of the program is ready."""
    project.agents = {"writer": ScriptedAgent()}
    able = WorkerCapabilities(project, ["gpu"])
    with project:
        changed = able.check(["agent:manual", "agent:writer", "agent:nobody", "label"])
        again = able.check(["agent:manual", "agent:nobody"])
        monkeypatch.setattr(hand_over, "RECHECK_SECONDS", -1.0)
        project.agents = {}
        lost = able.check(["agent:writer"])

    assert (changed, again, lost) == (True, False, True)
    assert {each for each in able.names if each.startswith("agent:")} == {"agent:manual"}
    assert {"gpu", f"folder:{project.home.root}"} <= able.names
