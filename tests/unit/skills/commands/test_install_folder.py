"""What is written into an agent's folder, and what is left alone there."""

from pathlib import Path

import pytest

from signoff.errors import WriteFailed
from signoff.skills.commands.install import FILE, InstallAction, SkillFolder, marked

ONE, TWO = marked("critic", "one\n"), marked("critic", "two\n")


@pytest.fixture
def folder(tmp_path: Path) -> SkillFolder:
    return SkillFolder(tmp_path / "agent" / "skills")


def file_in(folder: SkillFolder, name: str = "critic") -> Path:
    return folder.path / name / FILE


@pytest.mark.parametrize(
    ("text", "reason"),
    [(ONE + "mine", "it was edited since it was installed"), ("mine", "signoff did not write it")],
)
def test_a_file_of_the_user_is_kept(folder: SkillFolder, text: str, reason: str) -> None:
    """An update must not cost them their work."""
    folder.install("critic", ONE)
    file_in(folder).write_text(text)

    results = [folder.install("critic", TWO), folder.uninstall("critic")]

    assert [(each.action, each.reason) for each in results] == [(InstallAction.KEPT, reason)] * 2
    assert file_in(folder).read_text() == text


@pytest.mark.parametrize("target", ["existing", "missing"])
def test_links_are_not_followed(folder: SkillFolder, tmp_path: Path, target: str) -> None:
    """They could lead to any file of the user."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "existing").mkdir(parents=True)
    (elsewhere / "existing" / FILE).write_text(ONE)
    folder.path.mkdir(parents=True)
    (folder.path / "critic").symlink_to(elsewhere / target)
    (folder.path / "file").mkdir()
    file_in(folder, "file").symlink_to(elsewhere / target / FILE)

    results = [act(name) for name in ("critic", "file")
               for act in (lambda n: folder.install(n, TWO), folder.uninstall)]  # fmt: skip

    assert [each.reason for each in results] == ["its folder is a link"] * 2 + ["it is a link"] * 2
    assert [each.read_text() for each in elsewhere.rglob(FILE)] == [ONE]


@pytest.mark.parametrize("obstacle", ["agent", "agent/skills", "agent/skills/critic"])
def test_a_file_in_the_way_is_an_error(folder: SkillFolder, tmp_path: Path, obstacle: str) -> None:
    """Nothing is overwritten, and there is no traceback."""
    path = tmp_path / obstacle
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")

    with pytest.raises(WriteFailed, match="critic"):
        folder.install("critic", ONE)
    assert path.read_text() == "mine"
