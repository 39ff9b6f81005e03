from pathlib import Path

from signoff.app.project import open_project


def test_the_database_can_be_in_another_folder(tmp_path: Path) -> None:
    """Some file systems do not support SQLite."""
    elsewhere = tmp_path / "elsewhere.db"
    environment = isolated(tmp_path) | {"SIGNOFF_DATABASE": str(elsewhere)}

    with open_project(tmp_path, environment, create=True):
        assert elsewhere.exists()


def isolated(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "user")}
