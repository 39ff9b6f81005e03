import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.core.errors import Problem
from signoff.documents.discovery import assigned_value, discover_files, source_files

FLOW = """
from signoff import Outcome, StepDef, Workflow

{more}
WORKFLOW = Workflow({name!r}, StepDef("only", next={{Outcome.OK: None}}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of modules; those that are imported from it are removed afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write(path: Path, name: str, more: str = "") -> None:
    path.write_text(FLOW.format(name=name, more=more))


def test_every_broken_module_and_every_duplicate_is_reported_at_once(folder: Path) -> None:
    """Fixing one per try would waste a morning, and the good ones are found all the same."""
    for file, name in (("one", "plan"), ("two", "plan"), ("three", "look")):
        write(folder / f"{file}.py", name)
    (folder / "broken.py").write_text("import not_installed_here\nWORKFLOW = 1\n")
    (folder / "cut.py").write_text("WORKFLOW = (\n")
    (folder / "number.py").write_text("WORKFLOW = 5\n")

    found = discover_files(source_files(str(folder), folder, []))

    assert found.names == ["look", "plan"]
    places = [problem.where for problem in found.problems]
    assert [Path(each.rstrip(":0123456789")).name for each in places[:-1]] == [
        "broken.py",
        "cut.py",
        "number.py",
    ]
    assert places[-1] == "workflow 'plan'"


def test_a_module_may_build_other_workflows_next_to_its_own(folder: Path) -> None:
    """Only `WORKFLOW` has a name that users can run."""
    write(
        folder / "one.py", "plan", 'PART = Workflow("part", StepDef("a", next={Outcome.OK: None}))'
    )

    found = discover_files([folder / "one.py"])

    assert (found.names, found.problems) == (["plan"], ())


def test_a_module_without_a_workflow_is_never_imported(folder: Path) -> None:
    """A script in the folder that deploys something must not be started by a search."""
    (folder / "script.py").write_text(
        "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\nx = 'WORKFLOW'\n"
    )

    found = discover_files([folder / "script.py"])

    assert (found.found, found.problems) == ((), ())
    assert not (folder / "script.ran").exists()


def test_a_package_is_searched_without_importing_it(folder: Path) -> None:
    """Its `__init__` may need what only its modules' users have installed."""
    package = folder / "found_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "notes.py").write_text("")
    sys.path.insert(0, str(folder))
    problems: list[Problem] = []

    files = source_files("found_package", folder / "elsewhere", problems)

    assert [path.name for path in files] == ["__init__.py", "notes.py"]
    assert problems == []
    assert discover_files(files).problems == ()


def test_what_is_neither_a_folder_nor_a_module_is_a_problem(folder: Path) -> None:
    """A typo would otherwise make workflows vanish."""
    problems: list[Problem] = []

    assert source_files("no.such.module", folder, problems) == []
    assert "neither a folder nor a module" in str(problems[0])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("WORKFLOW = 1", True),
        ("WORKFLOW: object = 1", True),
        ("WORKFLOW: object", False),
        ("def f():\n    WORKFLOW = 1", False),
        ("# WORKFLOW = 1", False),
        ("print('WORKFLOW')", False),
    ],
)
def test_only_an_assignment_at_the_top_of_a_module_counts(source: str, expected: bool) -> None:
    """Anything else would import files without a workflow."""
    assert (assigned_value(source) is not None) is expected
