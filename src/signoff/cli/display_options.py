"""How a person wants to watch a run and be asked what it waits for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from signoff.cli.output import Output, is_terminal
from signoff.cli.terminal import has_keyboard


@dataclass(frozen=True)
class DisplayOptions:
    """How a person wants to watch and be asked."""

    out: Output
    no_input: bool = False
    events: Path | None = None
    """Where everything that happens is appended as well."""

    @property
    def may_ask(self) -> bool:
        """Whether there is a person at the terminal who wants to be asked."""
        terminal = has_keyboard() and is_terminal(sys.stderr)
        return terminal and not self.no_input and not self.out.as_json
