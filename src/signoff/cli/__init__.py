"""The command line: parses, calls a use case, renders. No logic lives here."""

import gc
import sys
from collections.abc import Sequence

from signoff._version import __version__

INTERRUPTED = 130
"""The same as in `signoff.cli.exits`, which is imported only when needed."""

COLLECT_AFTER = 100_000
"""New objects after which Python looks for garbage, in a process that runs one command.

Loading a command makes up to a hundred thousand objects, of which nearly all stay in use. Looking
for garbage at every 700th, Python's default, would take a tenth of the start.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    own_process = arguments is None
    args = sys.argv[1:] if arguments is None else list(arguments)
    if args == ["--version"]:
        # Answered before anything else is imported, because scripts call this often.
        print(f"signoff {__version__}")
        return 0
    if own_process:
        gc.set_threshold(COLLECT_AFTER)
    try:
        from signoff.cli.entry import run_command

        return run_command(args)
    except KeyboardInterrupt:
        # Ctrl-c before the command started or after it finished.
        return INTERRUPTED
    finally:
        if own_process:
            # Python looks for garbage once more at exit, but not among frozen objects.
            gc.freeze()
