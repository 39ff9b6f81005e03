from pathlib import Path

import pytest

from signoff.core.errors import UnsafePath
from signoff.skills import FileResourceProvider


def test_files_are_read_and_written_below_the_root(tmp_path: Path) -> None:
    """Conventions and resources are files, with or without their ending."""
    provider = FileResourceProvider(tmp_path)
    provider.write_file("conventions/style.md", "short")
    provider.write_file("resources/table.csv", "a,b")

    assert provider.get_convention("style") == provider.get_convention("style.md") == "short"
    assert provider.get_resource("table.csv") == provider.read_file("resources/table.csv") == "a,b"
    for read in (provider.get_convention, provider.get_resource, provider.read_file):
        with pytest.raises(FileNotFoundError):
            read("missing")


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "link", "link/x", "", "a\0b"])
def test_nothing_outside_the_root_is_reached(tmp_path: Path, path: str) -> None:
    """Names come from models."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "x").write_text("secret")
    (root / "link").symlink_to(tmp_path)
    provider = FileResourceProvider(root)

    with pytest.raises(UnsafePath):
        provider.read_file(path)
    with pytest.raises(UnsafePath):
        provider.write_file(path, "changed")
    assert (tmp_path / "x").read_text() == "secret"


def test_workflows_and_the_guidance_of_their_steps_are_found(tmp_path: Path) -> None:
    """A skill can show what another one says."""
    FileResourceProvider(tmp_path).write_file(
        "workflows/tiny.py",
        "from signoff import Outcome, StepDef, Workflow\n"
        "WORKFLOW = Workflow('tiny', StepDef('a', 'Look', ['Look.'], next={Outcome.OK: None}))\n",
    )
    provider = FileResourceProvider(tmp_path)

    assert provider.get_workflow("tiny").name == "tiny"
    assert provider.get_step_guidance("tiny", "a") == {
        "step": "a",
        "title": "Look",
        "actions": ("Look.",),
    }
