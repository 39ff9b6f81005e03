"""A worker notices that what it has loaded was changed."""

from pathlib import Path

import pytest

from signoff.app.home import init_home
from signoff.app.loaded_files import LoadedFiles
from signoff.app.project import Project, open_project

SETTINGS = """
version: 1
agents:
  writer: {kind: scripted, file: script.yaml}
  other: {kind: command, argv: [cat, notes.md]}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose settings name files."""
    monkeypatch.chdir(tmp_path)
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "none")}
    init_home(tmp_path, environment)
    (tmp_path / ".signoff" / "config.yaml").write_text(SETTINGS)
    (tmp_path / "script.yaml").write_text("version: 1\nrules: []\n")
    (tmp_path / "notes.md").write_text("Notes.\n")
    return open_project(tmp_path, environment)


@pytest.mark.parametrize(
    ("file", "counts"),
    [(".signoff/config.yaml", True), ("script.yaml", True), ("notes.md", False)],
)
def test_files_that_the_settings_name_count_as_settings(
    project: Project, file: str, counts: bool
) -> None:
    """A worker would answer with an old script, although its user has just changed it."""
    with project:
        loaded = LoadedFiles(project)
        assert not loaded.changed()

        path = project.home.root / file
        path.write_text(f"{path.read_text()}\n# changed\n")

        assert loaded.changed() is counts


def test_a_named_file_that_appears_counts_as_changed(project: Project) -> None:
    """Its agent has refused every call until now."""
    with project:
        Path("script.yaml").unlink()
        loaded = LoadedFiles(project)

        Path("script.yaml").write_text("version: 1\nrules: []\n")

        assert loaded.changed()
