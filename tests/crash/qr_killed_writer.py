"""Records one result of a quality review, and is killed at one of its system calls.

Usage: `qr_killed_writer.py FILE ID CALLS`, with the number of calls it survives.
"""

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from signoff.skills.qr import record

remaining = int(sys.argv[3])


def profile(_frame: FrameType, event: str, called: Any) -> None:
    """Kills the process when it has no call left."""
    global remaining  # noqa: PLW0603  # a profile function has no other place for it
    if event == "c_call" and getattr(called, "__module__", None) in ("posix", "fcntl", "_io"):
        if remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        remaining -= 1


# The first record imports modules, which takes many calls that are of no interest here.
record(Path(sys.argv[1]), "a", "FAIL", "kept")
sys.setprofile(profile)
record(Path(sys.argv[1]), sys.argv[2], "FAIL", "half of it")
sys.setprofile(None)
