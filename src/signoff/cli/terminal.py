"""Controls the terminal's keyboard: no echo while a view draws, no stale input at prompts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

try:
    import termios
except ImportError:  # Windows: its console echoes only what is read
    termios = None  # type: ignore[assignment]  # checked before each use


SHOW_CURSOR = "\x1b[?25h"


def has_keyboard() -> bool:
    """Tells whether the user can type here.

    A background job must not touch the terminal: changing its settings would stop the
    process without a message.
    """
    return in_foreground(sys.stdin)


def in_foreground(stream: Any) -> bool:
    """Tells whether a stream is a terminal and this process is in its foreground."""
    try:
        if stream is None or not stream.isatty():
            return False
        front = os.tcgetpgrp(stream.fileno())
    except ValueError:
        return False  # closed
    except (AttributeError, OSError):
        return True  # a terminal without job control has no background
    return front == os.getpgrp()


class Keyboard:
    """Turns the echo off while a view draws, so that typed characters do not appear in it."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def mute(self) -> None:
        """Stops the echo; ctrl-c still works."""
        if termios is None or not has_keyboard():
            return
        with suppress(termios.error, OSError):
            self._before = termios.tcgetattr(sys.stdin)
            quiet = list(self._before)
            quiet[3] &= ~termios.ECHO
            termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)

    def restore(self) -> None:
        """Restores the terminal's settings."""
        if termios is None or self._before is None or not has_keyboard():
            return
        with suppress(termios.error, OSError):
            termios.tcsetattr(sys.stdin, termios.TCSANOW, self._before)
        self._before = None


def discard_typed() -> None:
    """Discards what was typed before the question appeared."""
    if termios is None or not has_keyboard():
        return
    with suppress(termios.error, OSError):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def read_key(prompt: str) -> str:
    """Prints a prompt and returns the key that is pressed; what was typed before is discarded."""
    if termios is None:
        import click

        click.echo(prompt, err=True, nl=False)
        return click.getchar()
    before = termios.tcgetattr(sys.stdin)
    raw = list(before)
    raw[3] &= ~(termios.ECHO | termios.ICANON)
    # Before the prompt: whoever answers it at once must not lose the key.
    termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, raw)
    try:
        print(prompt, end="", file=sys.stderr, flush=True)
        return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace")
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@contextmanager
def preserved_terminal() -> Iterator[None]:
    """Restores the terminal after a program that may be killed while it draws."""
    before = None
    if termios is not None and has_keyboard():
        with suppress(termios.error, OSError):
            before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        if before is not None:
            with suppress(termios.error, OSError):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
            os.write(2, SHOW_CURSOR.encode())
