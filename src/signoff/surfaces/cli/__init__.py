"""The command line: parses, calls a use case, renders. No logic lives here."""

import sys
from collections.abc import Sequence

from signoff._version import __version__

INTERRUPTED = 130
"""The same as in `signoff.surfaces.cli.exits`, which is imported only when needed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    args = sys.argv[1:] if arguments is None else list(arguments)
    if args == ["--version"]:
        # Answered before anything else is imported, because scripts call this often.
        print(f"signoff {__version__}")
        return 0
    try:
        from signoff.surfaces.cli.entry import run_command

        return run_command(args)
    except KeyboardInterrupt:
        # Ctrl-c before the command started or after it finished.
        return INTERRUPTED
