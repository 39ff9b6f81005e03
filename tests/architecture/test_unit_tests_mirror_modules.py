from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from tests.architecture.tree import PACKAGE, ROOT

UNIT = ROOT / "tests" / "unit"

EXPORTS = "exports"
"""Tests of what a package exports are called after that: `__init__` says nothing."""


def test_every_unit_test_is_found_at_the_path_of_its_module() -> None:
    """Developers must find the tests of a module without searching."""
    tests = [path.relative_to(UNIT).as_posix() for path in UNIT.rglob("test_*.py")]
    modules = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]

    assert len(tests) > 100
    assert list(misplaced_tests(tests, modules)) == []


def test_a_test_of_no_module_is_found() -> None:
    """A check that finds nothing would let tests be anywhere.

    A test may be named after a module, a part of it or a package.
    """
    modules = ["_extras.py", "runtime/process.py", "store/postgres/__init__.py"]
    in_place = [
        "runtime/test_process.py",
        "runtime/test_process_streams.py",
        "store/test_postgres.py",
        "store/postgres/test_exports.py",
        "test_extras.py",
    ]
    misplaced = ["runtime/test_streams.py", "test_process.py", "runtime/test_processes.py"]

    assert list(misplaced_tests([*in_place, *misplaced], modules)) == misplaced


def misplaced_tests(tests: Iterable[str], modules: Iterable[str]) -> Iterator[str]:
    """Returns the unit tests whose name begins with no module or package of their folder."""
    known = set(_names(modules))
    for test in tests:
        path = PurePosixPath(test)
        words = path.stem.removeprefix("test_").split("_")
        names = ("_".join(words[:end]) for end in range(1, len(words) + 1))
        if not any((path.parent, name) in known for name in names):
            yield test


def _names(modules: Iterable[str]) -> Iterator[tuple[PurePosixPath, str]]:
    for module in modules:
        path = PurePosixPath(module)
        yield path.parent, path.stem.strip("_")
        if path.stem == "__init__":
            yield path.parent.parent, path.parent.name
            yield path.parent, EXPORTS
