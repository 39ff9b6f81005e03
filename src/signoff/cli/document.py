"""Stdout for one document: whatever else prints, children of a handler too, goes to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO


@contextmanager
def stdout_alone() -> Iterator[TextIO]:
    """Gives stdout to the caller alone."""
    own = sys.stdout
    with redirect_stdout(sys.stderr):
        try:
            number, elsewhere = own.fileno(), sys.stderr.fileno()
        except OSError:
            # Not a file of the system's, so no other program can print to it.
            yield own
            return
        own.flush()
        kept = os.dup(number)
        os.dup2(elsewhere, number)
        results = open(kept, "w", encoding=own.encoding, errors=own.errors, closefd=False)  # noqa: SIM115
        try:
            # Whether anybody still reads (`| head`) makes no difference to what was done.
            with suppress(BrokenPipeError), results:
                yield results
        finally:
            os.dup2(kept, number)
            os.close(kept)
