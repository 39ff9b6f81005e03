"""Kills `signoff review --fix --write` before each change it makes to the disk, and resumes it.

Usage: `killed_write_back.py FOLDER STRIDE`: every STRIDE-th change is one to be killed at. Prints a
JSON list with the result of each kill; the last one survived. With an argument more, the files are
on a mount of their own.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from signoff.runtime import performers, project_files
from signoff.surfaces.cli import main
from signoff.testing.crash_child import run_and_exit
from tests import preload  # noqa: F401

FILES = {"docs/a.md": "It always works.\n", "docs/b.md": "It always works, too.\n"}
CHANGES = {"open", "write", "fsync", "fchmod", "chmod", "replace", "unlink", "mkdir", "rmdir"}
EDIT = {"kind": "replace", "find": "always", "text": "usually"}
SCRIPT = [
    {
        "step": "review",
        "times": 1,
        "json": {
            "overall": "FAIL",
            "issues": [
                {"path": path, "evidence": text.strip(), "finding": "Too sure.", "rule_id": "sure"}
                | {"severity": "HIGH", "edit": {**EDIT, "find": text, "text": fixed}}
                for path, text in FILES.items()
                for fixed in [text.replace("always", "usually")]
            ],
        },
    },
    {"step": "review", "json": {"overall": "PASS", "issues": []}},
]
SETTINGS = "version: 1\nagents:\n  claude: {kind: scripted, file: .signoff/script.json}\n"


def result_of(folder: Path, at: int, *, mounted: bool) -> dict[str, Any]:
    """Returns what is there after a review that was killed, and after its resume."""
    for name, text in {
        ".signoff/config.yaml": SETTINGS,
        ".signoff/script.json": json.dumps({"version": 1, "rules": SCRIPT}),
        ".signoff/constraints/tone.yaml": "rules: [{id: sure, text: Promise little.}]\n",
        **FILES,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if mounted:
        docs = str(folder / "docs")
        subprocess.run(["mount", "--bind", docs, docs], check=True)
    os.chdir(folder)
    before = files_of(folder)
    command = ["review", "docs", "--fix", "--write", "--name", "one", "--quiet"]
    code = in_child(partial(killed, command, at))
    between = files_of(folder)
    resumed = in_child(partial(main, ["resume", "one", "--quiet"])) if code else 0
    after = files_of(folder)
    return {
        "code": code,
        "resumed": resumed,
        "halves": [name for name in FILES if between[name] not in (FILES[name], fixed_text(name))],
        "temporary": sorted(between.keys() - before.keys()),
        "left": sorted(after.keys() - before.keys()),
        "lost": sorted(before.keys() - after.keys()),
        "fixed": [name for name in FILES if after[name] == fixed_text(name)],
    }


def fixed_text(name: str) -> str:
    return FILES[name].replace("always", "usually")


def files_of(folder: Path) -> dict[str, str]:
    """Returns the files that are none of the run's own, and the folder of temporary ones."""
    own = (
        ".signoff/runs/one",
        ".signoff/runs/latest",
        ".signoff/signoff.db",
        ".signoff/.gitignore",
        ".signoff/runs/.tmp",
    )
    return {
        name: path.read_text() if path.is_file() else ""
        for path in folder.rglob("*")
        for name in [path.relative_to(folder).as_posix()]
        if not name.startswith(own) and name != ".signoff/runs"
    }


def killed(command: list[str], at: int) -> int:
    """Runs a command that is killed before the change of this number while it writes back."""
    remaining = at

    def profile(_frame: FrameType, event: str, called: Any) -> None:
        nonlocal remaining
        if (
            event == "c_call"
            and called.__name__ in CHANGES
            and not isinstance(getattr(called, "__self__", None), str)
        ):
            if remaining == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            remaining -= 1

    def replace_files(
        root: Path, files: Mapping[str, str], expected: Mapping[str, str]
    ) -> dict[str, list[str]]:
        sys.setprofile(profile)
        try:
            result = project_files.replace_files(root, files, expected)
        finally:
            sys.setprofile(None)
        if remaining == 0:
            # All files are there, but the run does not know it yet.
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(performers, "replace_files", replace_files)  # noqa: B010  # it exports no such name
    return main(command)


def in_child(call: partial[int]) -> int:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        run_and_exit(call)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    results: list[dict[str, Any]] = []
    for number in count(step=int(sys.argv[2])):
        folder = Path(sys.argv[1], str(number))
        results.append(result_of(folder, number, mounted=len(sys.argv) > 3))
        if results[-1]["code"] == 0 or number > 100:
            break
    print(json.dumps(results))
