"""W6: what it takes to start, beyond what Python itself takes.

Bytecode is cached, as it is on every start but the first. Bare starts and the starts in
question take turns, and the shortest of each is compared: noise only ever adds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from benchmarks.sample import Figures, Work
from benchmarks.sizes import FULL, Scale

STARTS = 20
"""Starts of each kind in one sample."""

WAITING = 10
"""The exit code of a run that waits, here for the answer to its first agent call."""

FLOW = """\
goal: A slogan for a coffee shop, one short sentence.
constraints:
  inline:
    short: It has at most eight words.
    honest: It promises nothing that a coffee shop cannot keep.
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: apply, loop_to: review}
"""
"""The first flow of the README."""


def importing(code: str) -> Work:
    """Returns a work that measures a line of imports."""

    def work(folder: Path, scale: Scale) -> Figures:
        return {"import_s": over_bare([sys.executable, "-c", code], folder, scale)}

    return work


def commands(program: str, folder: Path, scale: Scale) -> Figures:
    """Measures commands in a project with one run, which waits at its first agent call."""
    (folder / "slogan.yaml").write_text(FLOW, encoding="utf-8")
    # External workers get what agents would be asked, so `run` ends at the first agent call.
    start = [program, "run", "slogan.yaml", "--pull"]
    _start([program, "init"], folder)
    _start([*start, "--name", "first"], folder)
    return {
        "version_s": over_bare([program, "--version"], folder, scale),
        "runs_s": over_bare([program, "runs"], folder, scale),
        "show_s": over_bare([program, "show", "first"], folder, scale),
        "validate_s": over_bare([program, "validate", "slogan.yaml"], folder, scale),
        "run_s": over_bare(start, folder, scale),
        "skill_step_s": over_bare(
            [program, "skill", "step", "decision-critic", "--step", "2"], folder, scale
        ),
    }


def session_commands(program: str, folder: Path, scale: Scale) -> Figures:
    """Measures commands on a session whose plan was written by hand and is to be approved."""
    context = ["-c", "module=slugs", "-c", "description=Makes slugs."]
    _start([program, "profile", "init", "python-module", *context, "--name", "session"], folder)
    approve = [program, "profile", "approve", "session"]
    _start(approve, folder)
    home, copy = folder / ".signoff", folder / "copy"
    plan = home / "runs" / "session" / "iteration-1" / "planning-response.md"
    plan.write_text("One function, one test.\n", encoding="utf-8")
    shutil.copytree(home, copy, symlinks=True)

    def restore() -> None:
        shutil.rmtree(home)
        shutil.copytree(copy, home, symlinks=True)

    return {
        "profile_status_s": over_bare([program, "profile", "status", "session"], folder, scale),
        "profile_approve_s": over_bare(approve, folder, scale, before=restore),
    }


def over_bare(
    command: list[str],
    folder: Path,
    scale: Scale,
    *,
    before: Callable[[], None] = lambda: None,
) -> float:
    """Returns the seconds a command takes over `python -c pass`; `before` is not measured."""
    bare = [sys.executable, "-c", "pass"]
    _start(command, folder)
    times = []
    for _ in range(STARTS if scale == FULL else 3):
        before()
        times.append((_start(bare, folder), _start(command, folder)))
    return min(it for _, it in times) - min(none for none, _ in times)


def _start(command: list[str], folder: Path) -> float:
    # Where no bytecode is written, every start would compile everything again.
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**own, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    quiet = subprocess.DEVNULL
    began = perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, stdout=quiet, stderr=quiet
    )
    took = perf_counter() - began
    assert done.returncode in (0, WAITING), command
    return took
