"""Prints log records on the terminal like other warnings, one line each."""

from __future__ import annotations

import logging
import sys
import traceback
from contextlib import suppress

from signoff.cli.text import clean, one_line

OURS = "signoff"


class LogLines(logging.Handler):
    """Prints log records as `warning: ...`, with tracebacks only in debug mode."""

    def __init__(self, *, debug: bool = False) -> None:
        super().__init__()
        self._debug = debug
        self._last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints one record unless it repeats the last line."""
        line = self._format(record)
        if line == self._last:
            return
        self._last = line
        # `sys.stderr` is read on each call because a live view replaces it while it draws. A
        # closed stream must not affect the run.
        with suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)

    def _format(self, record: logging.LogRecord) -> str:
        # The logger's name is shown for records of other packages.
        ours = record.name.partition(".")[0] == OURS
        whose = "" if ours and not self._debug else f"{record.name}: "
        line = f"{record.levelname.lower()}: {whose}{clean(record.getMessage())}"
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return line
        if self._debug:
            return f"{line}\n{''.join(traceback.format_exception(error)).rstrip()}"
        return one_line(f"{line}: {str(error) or type(error).__name__}")
