"""Starts `signoff worker` as a process of its own, so that a test can kill it."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def start_worker(
    root: Path, environment: Mapping[str, str], before: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """Starts a worker of the project in this folder; `before` is a program that runs it."""
    return subprocess.Popen(
        [*before, sys.executable, "-m", "signoff", "worker"],
        cwd=root,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
