from pathlib import Path

import pytest

from signoff.app.yaml_notations import is_contract, read_notation
from signoff.errors import InvalidWorkflow


@pytest.mark.parametrize(
    ("text", "contract"),
    [
        ("type: x\nsteps: [{name: a, command: [x]}]\n", True),
        ("steps: []\n", True),
        ("type: x\nstpes: []\n", True),
        ('{"type": "x", "steps": []}\n', True),
        ("workflow: [{step: generate}]\n", False),
        ("workflow: [{step: generate}]\nsteps: []\n", False),
        ("goal: Write the steps of a dance.\nmax_iterations: 3\n", False),
        ("steps: [\n", False),
        ("- steps\n", False),
        ("", False),
    ],
)
def test_a_file_is_a_contract_by_its_keys(tmp_path: Path, text: str, contract: bool) -> None:
    """Nobody should have to say twice what kind of file it is."""
    file = tmp_path / "file.yaml"
    file.write_text(text)

    assert is_contract(file) is contract


def test_a_file_that_is_not_there_is_told_by_whoever_reads_it(tmp_path: Path) -> None:
    """One problem, not a traceback."""
    with pytest.raises(InvalidWorkflow, match="is not there"):
        read_notation(tmp_path / "none.yaml", root=tmp_path)


def test_each_file_is_read_by_its_own_notation(tmp_path: Path) -> None:
    """Both stand side by side in a project."""
    (tmp_path / "a.yaml").write_text("type: x\nsteps: [{name: a, command: [x]}]\n")
    (tmp_path / "b.yaml").write_text("goal: x\nworkflow: [{step: generate}]\n")

    notations = [
        read_notation(tmp_path / name, root=tmp_path).notation for name in ("a.yaml", "b.yaml")
    ]

    assert notations == ["contracts", "flows"]
