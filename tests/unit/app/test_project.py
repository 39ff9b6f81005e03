from pathlib import Path

import pytest

from signoff.app.project import open_project
from signoff.errors import UsageError
from signoff.remedies import InitProject


def test_a_missing_project_is_created_on_request(tmp_path: Path) -> None:
    """The first run should not fail because a folder is missing."""
    with open_project(tmp_path, isolated(tmp_path), create=True) as project:
        assert project.home.path == tmp_path / ".signoff"
        assert (project.home.path / "signoff.db").exists()


def test_looking_for_a_project_does_not_create_one(tmp_path: Path) -> None:
    """`signoff runs` in the wrong folder must not leave a database behind."""
    with pytest.raises(UsageError) as refused:
        open_project(tmp_path, isolated(tmp_path))
    assert refused.value.remedies == (InitProject(),)
    assert list(tmp_path.iterdir()) == []


def test_the_database_can_be_in_another_folder(tmp_path: Path) -> None:
    """Some file systems do not support SQLite."""
    elsewhere = tmp_path / "elsewhere.db"
    environment = isolated(tmp_path) | {"SIGNOFF_DATABASE": str(elsewhere)}

    with open_project(tmp_path, environment, create=True):
        assert elsewhere.exists()


def isolated(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "user")}
