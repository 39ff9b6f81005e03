"""An environment of its own, with signoff and a package that extends it installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints"


def uv(*arguments: str) -> None:
    """Runs uv offline; uses the network only if something is not in the cache."""
    command = [sys.executable, "-m", "uv", *arguments]
    if subprocess.run([*command, "--offline"], capture_output=True).returncode != 0:
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def create_environment(folder: Path, *packages: str, constraints: str = "runtime.txt") -> None:
    """Creates an environment with signoff and these packages."""
    uv("venv", "--python", sys.executable, str(folder))
    uv(
        "pip", "install", "--python", str(folder),
        "--constraints", str(CONSTRAINTS / constraints),
        "--build-constraints", str(CONSTRAINTS / "dev.txt"), str(ROOT), *packages,
    )  # fmt: skip


def install_example(name: str, folder: Path) -> Path:
    """Copies an example to `source` in a folder, and installs it alone into `packages` there."""
    shutil.copytree(ROOT / "examples" / name, folder / "source")
    uv(
        "pip", "install", "--no-deps", "--target", str(folder / "packages"),
        "--build-constraints", str(CONSTRAINTS / "dev.txt"), str(folder / "source"),
    )  # fmt: skip
    return folder


class InstalledProject:
    """A folder in which the programs of an environment run."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self.environment, self.folder = environment, folder

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a program and returns its output."""
        return subprocess.run(
            [str(self.environment / "bin" / program), *arguments],
            cwd=self.folder,
            env={
                "PATH": os.defpath,
                "HOME": str(self.folder / "home"),
                "LANG": "C.UTF-8",
                "SIGNOFF_TRUST": "1",
            },
            input="",
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def signoff(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of signoff."""
        return self.run("signoff", *arguments)
