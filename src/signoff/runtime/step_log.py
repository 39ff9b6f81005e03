"""The lines that a handler logs: each is recorded once, however often the handler runs.

After a crash or a wait the handler runs again from the top and logs its lines again. A line is
recognized by its scope, its text and how often that text was logged before. Its position in the
log would not do: concurrent branches may come in another order when they are replayed, and a line
of one would then be taken for a line of the other. A line with another text is a new line, so a
handler that logs the time is not an error.
"""

from __future__ import annotations

from collections import Counter

from signoff.core.digest import line_digest
from signoff.core.events import Logged
from signoff.runtime.journal import RunJournal

LONGEST_LINE = 4000
"""Characters of a line that are recorded: less than what is stored as a blob of its own."""


class StepLog:
    """What the handler of one attempt has logged so far in this process."""

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal
        self._seen: Counter[tuple[str, str]] = Counter()

    def add(self, scope: str, text: str) -> None:
        """Records a line unless it is a repeat; it is committed with what follows it."""
        line = self._journal.secrets.hide(text)
        if len(line) > LONGEST_LINE:
            line = f"{line[: LONGEST_LINE - 1]}…"
        key = line_digest(line)
        self._seen[scope, key] += 1
        recorded = self._journal.state.logged.get(scope, {}).get(key, 0)
        if self._seen[scope, key] > recorded:
            self._journal.record(Logged(line, scope))
