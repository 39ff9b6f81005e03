from pathlib import Path

from signoff.documents.home_folder import find_home_folder, named_home_folder


def test_without_a_project_there_is_no_home_folder(tmp_path: Path) -> None:
    """State would otherwise be created wherever a command is typed."""
    assert find_home_folder(tmp_path, {}) is None


def test_a_named_folder_is_relative_to_the_current_one(tmp_path: Path) -> None:
    """Scripts may set the variable to a path that begins where they run."""
    (tmp_path / "home").mkdir()

    assert named_home_folder(tmp_path, {"SIGNOFF_HOME": "home"}) == tmp_path / "home"
    assert find_home_folder(tmp_path, {"SIGNOFF_HOME": "home"}) == tmp_path / "home"
