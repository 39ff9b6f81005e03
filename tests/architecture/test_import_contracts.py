import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGE

ROOT = Path(__file__).parents[2]

FORBIDDEN_ARROWS = [
    tuple(arrow.split(">"))
    for arrow in """
    core>runtime core>documents documents>runtime runtime>store runtime>agents runtime>views
    store>agents review.pure>review.flow review.flow>skills review.flow>views contracts>app
    profiles>surfaces.cli skills>app notation>review.flow app>testing app>api views>app
    views>contracts app>review.flow surfaces.cli>profiles surfaces.web>pair testing>surfaces
    runtime>errors surfaces.cli>flows
    """.split()
]

IMPURE_MODULES = ["asyncio", "os", "pydantic", "random", "sqlite3", "time"]


def test_every_import_in_the_package_follows_the_arrows_of_the_architecture() -> None:
    """Without this the picture drifts, and a store or an agent can no longer be replaced."""
    result = lint_imports(ROOT)

    assert result.returncode == 0, result.stdout + result.stderr


def test_every_package_and_module_is_a_layer() -> None:
    """A new package outside the layers could import, and be imported by, anything."""
    assert top_level() - layers() == {"__init__", "__main__", "review"}


def test_the_halves_of_a_review_are_layers() -> None:
    """A third half would be in no layer."""
    parts = {path.name for path in (PACKAGE / "review").iterdir() if "__" not in path.name}

    assert {f"review.{part}" for part in parts} <= layers()


def test_no_contract_has_an_exception() -> None:
    """An exception is how a picture begins to drift."""
    assert not any("ignore_imports" in contract for contract in contracts())


@pytest.fixture(scope="module")
def broken_rules(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The linter's output for a tree that violates every rule."""
    tree = tmp_path_factory.mktemp("tree")
    lay_out_empty_packages(tree)
    for importer, imported in FORBIDDEN_ARROWS:
        add_import(tree, importer, f"signoff.{imported}")
    for module in IMPURE_MODULES:
        add_import(tree, "core", module)
    result = lint_imports(tree)
    assert result.returncode == 1
    return result.stdout


def test_an_arrow_that_points_up_or_sideways_is_refused(broken_rules: str) -> None:
    """Contracts that allow everything would pass, too."""
    arrows = [
        f"signoff.{importer} -> signoff.{imported} " for importer, imported in FORBIDDEN_ARROWS
    ]

    assert [arrow for arrow in arrows if arrow not in broken_rules] == []


def test_the_core_may_not_reach_outside(broken_rules: str) -> None:
    """A core that reads a clock or a disk replays differently from how it ran."""
    arrows = [f"signoff.core -> {module} " for module in IMPURE_MODULES]

    assert [arrow for arrow in arrows if arrow not in broken_rules] == []


def contracts() -> list[dict[str, object]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: list[dict[str, object]] = settings["tool"]["importlinter"]["contracts"]
    return found


def layers() -> set[str]:
    """Returns the names of all layers, without `signoff.`."""
    [lines] = [each["layers"] for each in contracts() if each["type"] == "layers"]
    assert isinstance(lines, list)
    return {name.strip().removeprefix("signoff.") for line in lines for name in line.split("|")}


def top_level() -> set[str]:
    return {
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }


def packages() -> Iterator[str]:
    """Yields the packages and modules that a contract names, and those they are part of."""
    for name in {*layers(), *(part for arrow in FORBIDDEN_ARROWS for part in arrow)}:
        parts = name.split(".")
        yield from ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    yield from ("surfaces/mcp", "surfaces/web")


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("lint-imports"))
    return subprocess.run(
        [program, "--no-logo", "--no-cache"], cwd=directory, capture_output=True, text=True
    )


def lay_out_empty_packages(directory: Path) -> None:
    (directory / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for name in ("", *packages()):
        folder = directory / "signoff" / name
        folder.mkdir(exist_ok=True, parents=True)
        (folder / "__init__.py").touch()


def add_import(directory: Path, importer: str, module: str) -> None:
    file = directory / "signoff" / importer.replace(".", "/") / "__init__.py"
    with file.open("a", encoding="utf-8") as source:
        source.write(f"import {module}\n")
