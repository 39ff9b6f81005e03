"""Puts a prompt where a chat window can paste it from, when this machine has such a place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

PATIENCE_SECONDS = 2.0
"""A clipboard nobody serves would otherwise hold the person up."""


def copy(text: str) -> bool:
    """Copies a text; tells whether that worked, and never fails."""
    argv = program(sys.platform, os.environ)
    if argv is None:
        return False
    try:
        done = subprocess.run(
            argv,
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def program(platform: str, environment: Mapping[str, str]) -> list[str] | None:
    """Returns what copies its standard input here, or None."""
    for argv in _programs(platform, environment):
        found = shutil.which(argv[0], path=environment.get("PATH"))
        if found is not None:
            return [found, *argv[1:]]
    return None


def _programs(platform: str, environment: Mapping[str, str]) -> list[list[str]]:
    if platform == "darwin":
        return [["pbcopy"]]
    if platform == "win32":
        return [["clip"]]
    wayland = [["wl-copy"]] if environment.get("WAYLAND_DISPLAY") else []
    x11 = [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    return [*wayland, *(x11 if environment.get("DISPLAY") else [])]
