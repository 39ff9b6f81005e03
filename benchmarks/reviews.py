"""W15: `signoff review` of 50 files, and the commands that show a long review.

Seconds are CPU time of the command's process, without what Python itself takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.sample import Figures
from benchmarks.sizes import FULL, Scale

CONSTRAINTS = 4
SIZE = 10_000
FOUND = 25
"""Findings of each round; every one is fixed by an exact edit."""
ENDS = (0, 11)
"""The exit codes of these commands: done, and a loop that reached its bound."""
SETTINGS = "version: 1\nagents:\n  claude: {kind: scripted, file: .signoff/script.json}\n"
FLOW = """\
goal: A list of sentences.
max_iterations: 20
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: apply, loop_to: review}
"""
PASS = {"step": "review", "json": {"overall": "PASS", "issues": []}}


async def reviews(folder: Path, scale: Scale) -> Figures:
    """W15: two projects whose critics answer at once."""
    program = str(Path(sys.executable).with_name("signoff"))
    times = 5 if scale == FULL else 1
    files, loop = folder / "files", folder / "loop"
    _many_files(files, 50 if scale == FULL else 10)
    spent, megabytes = _best([program, "review", "pages", "--yes"], files, times)
    figures = {"review_s": spent, "review_mb": megabytes}
    long_loop(loop, 20 if scale == FULL else 3)
    cpu_of([program, "run", "flow.yaml", "--name", "one", "--no-input"], loop)
    for command in (["show"], ["findings"], ["diff"], ["report", "-o", "report.html"]):
        name = command.pop(0)
        figures[f"{name}_s"] = _best([program, name, "one", *command], loop, times)[0]
    return figures


def _many_files(folder: Path, count: int) -> None:
    for number in range(CONSTRAINTS):
        text = f"rules:\n  - {{id: rule-{number}, text: Rule {number} holds.}}\n"
        _write(folder / f".signoff/constraints/c{number}.yaml", text)
    for number in range(count):
        line = f"A line of page {number} that has some words.\n"
        _write(folder / f"pages/{number}.md", line * (SIZE // len(line)))
    _script(folder, [])
    # The project around it ignores this folder, so a review would leave all of its files out.
    cpu_of(["git", "init", "-q"], folder)


def long_loop(folder: Path, rounds: int) -> None:
    """Writes a project whose flow takes so many rounds, each with findings that are all fixed."""
    _write(folder / ".signoff/constraints/tone.yaml", "rules: [{id: sure, text: Be modest.}]\n")
    _write(folder / "flow.yaml", FLOW)
    every = range(rounds * FOUND)
    rules: list[dict[str, Any]] = [
        {"step": "draft", "text": "".join(f"Sentence {n} is always true.\n" for n in every)}
    ]
    for begin in every[::FOUND]:
        issues = [_issue(number) for number in range(begin, begin + FOUND)]
        answer = {"overall": "FAIL", "issues": issues}
        rules.append({"step": "review", "times": 1, "json": answer})
    _script(folder, rules)


def _issue(number: int) -> dict[str, Any]:
    quote = f"Sentence {number} is always true."
    return {
        "evidence": quote,
        "finding": f"Sentence {number} promises what nobody can keep, and gives no reason for it.",
        "rule_id": "sure",
        "severity": "HIGH",
        "edit": {"kind": "replace", "find": quote, "text": f"Sentence {number} may be true."},
    }


def _script(folder: Path, rules: Sequence[dict[str, Any]]) -> None:
    content = {"version": 1, "rules": [*rules, PASS]}
    _write(folder / ".signoff/script.json", json.dumps(content))
    _write(folder / ".signoff/config.yaml", SETTINGS)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _best(command: list[str], folder: Path, times: int) -> tuple[float, float]:
    """Returns the least CPU seconds over those of bare Python, and the megabytes of a command."""
    cpu_of(command, folder)
    bare = min(cpu_of([sys.executable, "-c", "pass"], folder)[0] for _ in range(times))
    spent = [cpu_of(command, folder) for _ in range(times)]
    return min(seconds for seconds, _ in spent) - bare, max(size for _, size in spent)


def cpu_of(command: list[str], folder: Path) -> tuple[float, float]:
    """Returns the CPU seconds and the peak megabytes of a process."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(command, cwd=folder, env=own, stdout=quiet, stderr=quiet)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode in ENDS, command
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
