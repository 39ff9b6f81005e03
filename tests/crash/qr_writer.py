"""Records results of a quality review in processes that start together, or that are killed.

Usage: `qr_writer.py record FILE ID`, or `qr_writer.py kill FILE`.
"""

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from signoff.skills.qr.record_file import read_record, record

SYSTEM = ("posix", "fcntl", "_io")
"""The modules whose functions are system calls."""


def main(mode: str, path: Path, *more: str) -> None:
    """Does what the command line says."""
    if mode == "kill":
        print(json.dumps(kill_everywhere(path)))
        return
    # Ready. The test lets all processes go on at once.
    print("ready", flush=True)
    sys.stdin.readline()
    record(path, more[0], "FAIL", f"finding of {more[0]}")


def kill_everywhere(path: Path) -> dict[str, int]:
    """Records in a new process again and again, killed one system call later each time.

    These are opening, locking, writing, syncing and renaming files. Returns how often the old and
    the new content was found.
    """
    found = {"old": 0, "new": 0, "survived": 0}
    while not found["survived"]:
        record(path, "b", "PASS")
        calls = found["old"] + found["new"]
        child = os.fork()
        if child == 0:
            sys.setprofile(killer(calls))
            record(path, "b", "FAIL", "half of it")
            sys.setprofile(None)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        a, b = read_record(path).items
        assert (a.status, a.finding) == ("FAIL", "kept"), a
        assert (b.status, b.finding) in {("PASS", None), ("FAIL", "half of it")}, b
        if os.waitstatus_to_exitcode(status) == 0:
            found["survived"] += 1
        else:
            assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
            found["new" if b.finding else "old"] += 1
    return found


def killer(calls: int) -> Any:
    """Returns a profile function that kills its process at the system call after `calls` others."""
    remaining = calls

    def profile(_frame: FrameType, event: str, called: Any) -> None:
        nonlocal remaining
        if event == "c_call" and getattr(called, "__module__", None) in SYSTEM:
            if remaining == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            remaining -= 1

    return profile


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
