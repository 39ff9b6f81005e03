"""Options of the commands that drive runs: output, prompts and the events file."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from signoff.cli.output import Output, is_terminal
from signoff.cli.terminal import has_keyboard


@dataclass(frozen=True)
class DisplayOptions:
    """How progress is shown and whether the user is asked."""

    out: Output
    no_input: bool = False
    events: Path | None = None
    """The file that all events are appended to."""

    @property
    def may_ask(self) -> bool:
        """Whether requests may be asked on the terminal."""
        terminal = has_keyboard() and is_terminal(sys.stderr)
        return terminal and not self.no_input and not self.out.as_json
