"""The command line: parses, calls a use case, renders. No logic lives here."""

import sys

from signoff._version import __version__


def main() -> int:
    """Answers `--version`, and refuses everything else with the usage exit code."""
    if sys.argv[1:] == ["--version"]:
        print(f"signoff {__version__}")
        return 0
    print("usage: signoff --version", file=sys.stderr)
    return 2
