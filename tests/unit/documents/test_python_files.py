"""Files of users are imported from their own folders."""

import sys
from pathlib import Path

import pytest

from signoff.documents import python_files
from signoff.documents.python_files import import_file


@pytest.fixture(autouse=True)
def import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])


def _workflow(folder: Path, value: int, helper: str = "price_rules.py") -> Path:
    (folder / helper).parent.mkdir(parents=True, exist_ok=True)
    (folder / helper).write_text(f"LIMIT = {value}\n")
    (folder / "workflow.py").write_text("import price_rules\nLIMIT = price_rules.LIMIT\n")
    return folder / "workflow.py"


@pytest.mark.parametrize("helper", ["price_rules.py", "price_rules/__init__.py"])
def test_files_in_two_folders_get_the_modules_beside_them(tmp_path: Path, helper: str) -> None:
    """The second workflow must not run with the helpers of the first."""
    first, second = (_workflow(tmp_path / str(n), n, helper) for n in (1, 2))
    third = _workflow(tmp_path / "3", 3)

    limits = [import_file(path).LIMIT for path in (first, second, third, first)]

    assert limits == [1, 2, 3, 1]


def test_a_folder_that_comes_later_on_the_import_path_is_searched_first(tmp_path: Path) -> None:
    """A program may have put the folder there itself, behind another one."""
    first, second = (_workflow(tmp_path / str(n), n) for n in (1, 2))
    limits = [import_file(first).LIMIT]
    sys.path.append(str(second.parent))

    assert [*limits, import_file(second).LIMIT] == [1, 2]


def test_an_installed_module_comes_before_one_beside_the_workflow(tmp_path: Path) -> None:
    """A project cannot replace a library that signoff has yet to import."""
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed/price_rules.py").write_text("LIMIT = 0\n")
    sys.path.append(str(tmp_path / "installed"))
    sys.modules.pop("price_rules", None)

    limit = import_file(_workflow(tmp_path / "project", 1)).LIMIT
    del sys.modules["price_rules"]

    assert limit == 0


def test_modules_of_the_standard_library_are_not_replaced(tmp_path: Path) -> None:
    """A file called `select.py` beside the workflow must not break the process."""
    known = sys.modules["select"]
    _workflow(tmp_path / "other", 1)
    (tmp_path / "select.py").write_text("")

    import_file(_workflow(tmp_path, 1))

    assert sys.modules["select"] is known


def test_a_database_beside_the_workflow_is_not_taken_for_a_package(tmp_path: Path) -> None:
    """It is called `signoff.db`; forgetting the package `signoff` would double all its classes."""
    known = sys.modules["signoff"]
    import_file(Path(python_files.__file__))
    (tmp_path / "signoff.db").touch()

    import_file(_workflow(tmp_path, 1))

    assert sys.modules["signoff"] is known
