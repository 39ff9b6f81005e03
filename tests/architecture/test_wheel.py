import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from signoff import __version__

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "signoff"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    constraints = str(ROOT / "constraints" / "dev.txt")
    uv("build", "--wheel", "--build-constraints", constraints, "--out-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


def test_the_installed_wheel_works_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """A user installs the wheel, not the checkout: what is missing from it is missing for them."""
    environment, empty = tmp_path / "environment", tmp_path / "empty"
    empty.mkdir()
    uv("venv", "--python", sys.executable, str(environment))
    runtime = str(ROOT / "constraints" / "runtime.txt")
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


def uv(*arguments: str) -> None:
    """Runs uv offline; uses the network only if something is not in the cache."""
    command = [sys.executable, "-m", "uv", *arguments]
    cached = subprocess.run([*command, "--offline"], capture_output=True)
    if cached.returncode != 0:
        fetched = subprocess.run(command, capture_output=True, text=True)
        assert fetched.returncode == 0, fetched.stderr
