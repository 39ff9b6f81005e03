import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FORBIDDEN_ARROWS = [
    tuple(arrow.split(">"))
    for arrow in """
    core>runtime errors>core runtime>store runtime>agents store>agents review>flows
    flows>skills contracts>app contracts>guarded_db flows>guarded_db guarded_db>contracts
    guarded_db>core guarded_db>runtime app>testing app>api exports>app exports>flows
    observers>app exports>observers telemetry>exports testing>cli web>cli mcp>web
    """.split()
]

IMPURE_MODULES = ["asyncio", "os", "pydantic", "random", "sqlite3", "time"]

PACKAGES = (
    "cli web mcp testing pair api app plugins observers pages exports telemetry flows skills "
    "profiles contracts notation guarded_db review agents store dispatch runtime core documents "
    "databases error_text errors _extras _version _lazy"
).split()


def test_every_import_in_the_package_follows_the_arrows_of_the_architecture() -> None:
    """Without this the picture drifts, and a store or an agent can no longer be replaced."""
    result = lint_imports(ROOT)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def broken_rules(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The linter's output for a tree that violates every rule."""
    tree = tmp_path_factory.mktemp("tree")
    lay_out_empty_packages(tree)
    for importer, imported in FORBIDDEN_ARROWS:
        add_import(tree, importer, f"signoff.{imported}")
    for module in IMPURE_MODULES:
        add_import(tree, "core", module)
    (tree / "signoff" / "helpers.py").touch()
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


def test_a_package_outside_the_layers_is_refused(broken_rules: str) -> None:
    """A new package outside the layers could import, and be imported by, anything."""
    assert "helpers" in broken_rules


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("lint-imports"))
    return subprocess.run(
        [program, "--no-logo", "--no-cache"], cwd=directory, capture_output=True, text=True
    )


def lay_out_empty_packages(directory: Path) -> None:
    (directory / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (directory / "signoff").mkdir()
    for name in ("__init__", *PACKAGES):
        (directory / "signoff" / f"{name}.py").touch()


def add_import(directory: Path, importer: str, module: str) -> None:
    with (directory / "signoff" / f"{importer}.py").open("a", encoding="utf-8") as source:
        source.write(f"import {module}\n")
