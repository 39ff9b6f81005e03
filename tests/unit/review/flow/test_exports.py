"""The public names of `signoff.flows`."""

from pathlib import Path

import pytest

import signoff
from signoff import flows
from signoff.core.outcome import Status
from signoff.testing import ScriptedAgent
from tests.tables import table
from tests.unit.review.flow.harness import passes, rules


@table("name", flows.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """A listed name that is missing would only fail when it is used."""
    assert getattr(flows, name) is not None
    assert name in dir(flows)


def test_a_flow_can_be_run_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file that runs on the command line."""
    (tmp_path / "flow.yaml").write_text(
        "goal: Say hello.\n"
        "constraints: {inline: {short: Be short.}}\n"
        "workflow: [{step: generate}, {step: critique}, {step: adjudicate}]\n"
    )
    claude = ScriptedAgent(["Hello.", passes(), rules("APPROVED")])
    workflow = flows.load_flow("flow.yaml", root=tmp_path)
    monkeypatch.chdir(tmp_path)

    result = signoff.run(workflow, home=tmp_path, agents={"claude": claude})

    assert result.status is Status.COMPLETED
    assert (tmp_path / f".signoff/runs/{result.run}/final/artifact.md").read_text() == "Hello.\n"
