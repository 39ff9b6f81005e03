import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from signoff import __version__
from tests.installed import CONSTRAINTS, ROOT, uv

PACKAGE = ROOT / "src" / "signoff"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    constraints = str(CONSTRAINTS / "dev.txt")
    uv("build", "--wheel", "--build-constraints", constraints, "--out-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


def test_the_installed_wheel_works_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """A user installs the wheel, not the checkout: what is missing from it is missing for them."""
    environment, empty = tmp_path / "environment", tmp_path / "empty"
    empty.mkdir()
    uv("venv", "--python", sys.executable, str(environment))
    runtime = str(CONSTRAINTS / "runtime.txt")
    uv("pip", "install", "--python", str(environment), "--constraints", runtime, str(wheel))

    answer = subprocess.run(
        [environment / "bin" / "signoff", "--version"],
        cwd=empty,
        env={"PATH": os.defpath, "HOME": str(empty)},
        capture_output=True,
        text=True,
    )

    assert answer.returncode == 0, answer.stderr
    assert __version__ in answer.stdout
    assert list(empty.iterdir()) == []


def test_the_wheel_contains_every_file_of_the_package(wheel: Path) -> None:
    """Migrations, templates and schemas are no Python files and are easily left behind."""
    shipped = set(zipfile.ZipFile(wheel).namelist())

    expected = {
        f"signoff/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert expected - shipped == set()
