"""What the engine logs, said on the terminal like every other warning: one line each."""

from __future__ import annotations

import logging
import sys
import traceback
from contextlib import suppress

from signoff.cli.text import clean, one_line

OURS = "signoff"


class LogLines(logging.Handler):
    """Prints log records as `warning: ...`; where in the code it was is shown on request."""

    def __init__(self, *, debug: bool = False) -> None:
        super().__init__()
        self._debug = debug
        self._last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints one record; the same line is not said twice in a row."""
        line = self._worded(record)
        if line == self._last:
            return
        self._last = line
        # Asked for now: while a picture is drawn, another stream stands there. And whether
        # anybody can read it makes no difference to the run.
        with suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)

    def _worded(self, record: logging.LogRecord) -> str:
        # Whose words they are is said where they are not ours.
        ours = record.name.partition(".")[0] == OURS
        whose = "" if ours and not self._debug else f"{record.name}: "
        said = f"{record.levelname.lower()}: {whose}{clean(record.getMessage())}"
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return said
        if self._debug:
            return f"{said}\n{''.join(traceback.format_exception(error)).rstrip()}"
        return one_line(f"{said}: {str(error) or type(error).__name__}")
