"""The script of quality reviewers: prints what to review next.

Run as `signoff skill script signoff.skills.quality_review --phase PHASE --state-dir DIR`. Without
a file of items it asks for them, once. Otherwise it lists what is due, by group.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from signoff.skills.program import COMMANDS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script; returns the exit code."""
    code: int = import_module(f"{COMMANDS}.quality_review").main(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
