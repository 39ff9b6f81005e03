"""Keeps the parser from writing to the terminal about statements that are refused anyway."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGER = "sqlglot"


class _Quiet(logging.Filter):
    """Drops what the parser says in threads that have asked for quiet, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.local()

    def filter(self, _record: logging.LogRecord) -> bool:
        return not getattr(self.asked, "now", False)


_FILTER = _Quiet()


@contextmanager
def quiet() -> Iterator[None]:
    """Holds the parser's warnings back for a while, in this thread only."""
    # Adding it again does nothing; somebody may have set logging up anew meanwhile.
    logging.getLogger(_LOGGER).addFilter(_FILTER)
    _FILTER.asked.now = True
    try:
        yield
    finally:
        _FILTER.asked.now = False
