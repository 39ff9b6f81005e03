import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from signoff import __version__
from tests.acceptance.doc_blocks import sections
from tests.installed import CONSTRAINTS, ROOT, uv

FIRST_STEPS = ["signoff --version", "signoff init --preset docs", "signoff validate"]
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


def test_the_commands_to_install_signoff_work_as_printed(tmp_path: Path) -> None:
    """They are in one place, and everything else starts with them."""
    (install,) = (each for each in sections(ROOT / "README.md") if each.title == "Install")
    (block,) = install.blocks
    from_checkout, build, from_wheel = block.text.splitlines()
    pins = {"PIP_CONSTRAINT": str(CONSTRAINTS / "runtime.txt")}
    checkout = tmp_path / "checkout"
    names = ["src", "pyproject.toml", "README.md", "LICENSE"]
    checkout.mkdir()
    for name in names:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, checkout / name)
    for number, commands in enumerate([[from_checkout], [build, from_wheel]]):
        environment, empty = tmp_path / f"environment-{number}", tmp_path / f"empty-{number}"
        empty.mkdir()
        venv.create(environment, with_pip=True)
        variables = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_"))}
        variables |= {"PATH": f"{environment / 'bin'}:{os.defpath}", "HOME": str(empty), **pins}
        typed = "\n".join(["set -e", f"cd {checkout}", *commands, f"cd {empty}", *FIRST_STEPS])

        done = subprocess.run(["sh", "-c", typed], env=variables, capture_output=True, text=True)

        assert done.returncode == 0, done.stdout + done.stderr
        assert __version__ in done.stdout
        assert (empty / ".signoff/flows/docs.yaml").is_file()


def test_the_wheel_contains_every_file_of_the_package(wheel: Path) -> None:
    """Migrations, templates and schemas are no Python files and are easily left behind."""
    shipped = set(zipfile.ZipFile(wheel).namelist())

    expected = {
        f"signoff/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert expected - shipped == set()
