from contextlib import closing
from pathlib import Path

import pytest

from signoff.app.settings.project import (
    absolute_address,
    open_database,
    open_project,
    set_up,
    setup_sql,
)
from signoff.app.settings.settings import database_file
from signoff.core.errors import ConfigError, UsageError
from signoff.store.sqlite import SqliteStore


@pytest.mark.parametrize(
    ("address", "file"),
    [
        ("signoff.db", "/home/signoff.db"),
        ("sqlite:///signoff.db", "/home/signoff.db"),
        ("SQLite:////data/runs.db", "/data/runs.db"),
        ("/data/runs.db", "/data/runs.db"),
        ("sqlite:///50%25?.db", "/home/50%25?.db"),
    ],
)
def test_a_path_and_a_url_name_the_same_file(address: str, file: str) -> None:
    """Users write either, relative to the project home or absolute."""
    assert database_file(address, Path("/home")) == Path(file)


def test_an_address_that_is_remembered_is_valid_in_every_folder() -> None:
    """A user who looks for a moved run is somewhere else."""
    assert absolute_address("runs.db", Path("/data")) == "/data/runs.db"
    assert absolute_address("postgresql://host/db", Path("/data")) == "postgresql://host/db"


def test_a_file_is_opened_by_its_url(tmp_path: Path) -> None:
    """The same setting works for a file and for a server."""
    with closing(open_database("sqlite:///runs.db", tmp_path)) as store:
        assert isinstance(store, SqliteStore)

    assert (tmp_path / "runs.db").exists()


@pytest.mark.parametrize("address", ["mysql://bob:secret@host/db", "postgre://host/db"])
def test_an_unknown_kind_of_database_lists_the_valid_ones(address: str) -> None:
    """Users mistype schemes; the message must not repeat a password."""
    with pytest.raises(ConfigError, match="postgresql://, sqlite://") as caught:
        open_database(address, Path())

    assert "secret" not in str(caught.value)


def test_a_file_needs_no_setup() -> None:
    """It is created and migrated when it is opened."""
    with pytest.raises(UsageError, match="nothing to do"):
        set_up("signoff.db")
    with pytest.raises(UsageError, match="nothing to do"):
        setup_sql("signoff.db", "worker")


def test_the_database_can_be_in_another_folder(tmp_path: Path) -> None:
    """Some file systems do not support SQLite."""
    elsewhere = tmp_path / "elsewhere.db"
    environment = isolated(tmp_path) | {"SIGNOFF_DATABASE": str(elsewhere)}

    with open_project(tmp_path, environment, create=True):
        assert elsewhere.exists()


def isolated(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "user")}
