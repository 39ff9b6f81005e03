"""The contestants: each is a module that runs the workloads, and the Python to run it with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.sample import Figures

ROOT = Path(__file__).resolve().parents[1]

SCRATCH = ROOT / ".bench"
"""Databases and environments of other engines; on the same disk as the project, never in memory."""

PATIENCE_SECONDS = 600.0
"""A sample that takes longer is cancelled."""


class SampleError(Exception):
    """A contestant could not do a work."""


@dataclass(frozen=True)
class Contestant:
    """A program that can do the works."""

    name: str
    module: str
    python: str = sys.executable
    variables: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of its processes."""

    def sample(self, work: str, folder: Path, *, quick: bool) -> Figures:
        """Does one work in a fresh process and returns what was measured."""
        command = [self.python, "-m", self.module, work, str(folder)]
        try:
            done = subprocess.run(
                [*command, "--quick"] if quick else command,
                cwd=ROOT,
                env={**_environment(), **self.variables},
                check=False,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise SampleError(f"{self.name} took too long over {work}") from None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise SampleError(f"{self.name} could not do {work}: {lines[0]}")
        figures: Figures = json.loads(done.stdout.splitlines()[-1])
        return figures


FLOOR = Contestant("floor", "benchmarks.floor")
SIGNOFF = Contestant("signoff", "benchmarks.engine")


def _environment() -> dict[str, str]:
    """Returns the environment with bytecode caching on: without it imports are charged twice."""
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPATH": str(ROOT)}
