"""An environment for each other engine, with exact versions, created once and kept.

They stand in the benchmark's scratch directory; nothing of them reaches the project's own
environment. uv is used where there is one, the standard tools otherwise.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.contestants import ROOT, SCRATCH

PINS = Path(__file__).parent


def environment(name: str) -> str:
    """Returns the Python of another engine's environment, which is created if it is missing."""
    pins = PINS / f"{name}.txt"
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:8]
    place = SCRATCH / "peers" / f"{name}-{digest}"
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    ready = place / ".ready"
    if not ready.exists():
        print(f"making an environment for {name}", file=sys.stderr)
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        _make(place, python, pins)
        ready.touch()
    return str(python)


def _make(place: Path, python: Path, pins: Path) -> None:
    uv = _uv()
    if uv is None:
        _run([sys.executable, "-m", "venv", str(place)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(pins)])
        return
    _run([uv, "venv", "--quiet", "--python", sys.executable, str(place)])
    _run([uv, "pip", "install", "--quiet", "--python", str(python), "--requirement", str(pins)])


def _uv() -> str | None:
    """Finds uv: next to this Python, where the Makefile puts it, or on the PATH."""
    places = (Path(sys.executable).with_name("uv"), ROOT / ".uv" / "bin" / "uv")
    return next((str(p) for p in places if p.exists()), None) or shutil.which("uv")


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True)
