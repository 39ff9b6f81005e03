"""The keyboard: quiet while a picture is drawn, and fresh before a question."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

try:
    import termios
except ImportError:  # Windows: its console echoes only what is read
    termios = None  # type: ignore[assignment]  # asked for before each use


def has_keyboard() -> bool:
    """Tells whether somebody can type here: a job in the background may not touch the terminal.

    Changing its settings from there would stop the process, without a word to anybody.
    """
    return is_ours(sys.stdin)


def is_ours(stream: Any) -> bool:
    """Tells whether a stream is a terminal that this process may draw on: not in the background."""
    try:
        if stream is None or not stream.isatty():
            return False
        front = os.tcgetpgrp(stream.fileno())
    except ValueError:
        return False  # closed
    except (AttributeError, OSError):
        return True  # a terminal without jobs, so without a background
    return front == os.getpgrp()


class Keyboard:
    """Keeps what is typed from being shown in the middle of a picture."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def hush(self) -> None:
        """Stops the echo; ctrl-c still works."""
        if termios is None or not has_keyboard():
            return
        with suppress(termios.error, OSError):
            self._before = termios.tcgetattr(sys.stdin)
            quiet = list(self._before)
            quiet[3] &= ~termios.ECHO
            termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)

    def restore(self) -> None:
        """Gives the terminal back as it was."""
        if termios is None or self._before is None or not has_keyboard():
            return
        with suppress(termios.error, OSError):
            termios.tcsetattr(sys.stdin, termios.TCSANOW, self._before)
        self._before = None


def forget_typed() -> None:
    """Throws away what was typed before a question was there to be answered."""
    if termios is None or not has_keyboard():
        return
    with suppress(termios.error, OSError):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
