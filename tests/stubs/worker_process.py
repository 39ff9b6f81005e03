"""Starts `signoff worker` as a process of its own, so that a test can kill it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def start_worker(root: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Starts a worker of the project in this folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "signoff", "worker"],
        cwd=root,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
