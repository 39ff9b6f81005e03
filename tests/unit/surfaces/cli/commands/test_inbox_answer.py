"""Answers on the command line."""

from pathlib import Path

import pytest

from signoff.surfaces.cli import main

FLOW = """
goal: A line about the sea.
max_iterations: 1
workflow:
  - {step: generate, agent: manual}
  - {step: critique}
"""


def test_a_text_in_a_file_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer from a file with Windows line ends must arrive unchanged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "reply.md").write_bytes("Das Meer.\r\nMäßig.\r\n".encode())
    assert main(["run", "flow.yaml", "--name", "sea"]) == 10

    assert main(["answer", "1", "--file", "reply.md", "--resume"]) == 11

    final = tmp_path / ".signoff/runs/sea/final/artifact.md"
    assert final.read_bytes() == "Das Meer.\r\nMäßig.\r\n".encode()
