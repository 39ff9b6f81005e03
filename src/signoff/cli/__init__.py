"""The command line: parses, calls a use case, renders. No logic lives here."""

import sys
from collections.abc import Sequence

from signoff._version import __version__

INTERRUPTED = 130
"""As in `signoff.cli.exits`, which is not imported before it has to be."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given == ["--version"]:
        # Answered before anything else is imported: scripts ask this all the time.
        print(f"signoff {__version__}")
        return 0
    try:
        from signoff.cli.entry import run_command

        return run_command(given)
    except KeyboardInterrupt:
        # Ctrl-C before anything has begun, or after all is done.
        return INTERRUPTED
