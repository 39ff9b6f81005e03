"""Does one step's work on a database, and is killed at the moment it was told: see KILLS."""

import os
import signal
import sys
from pathlib import Path

from signoff.guarded_db.client import SafeDatabaseClient
from signoff.guarded_db.postconditions import Postcondition
from signoff.guarded_db.sqlite import SqliteConnection
from signoff.guarded_db.staging import Applied, Marker
from signoff.guarded_db.view import ReadOnlyView

MARKER = Marker("run-1", "edit", 1)
KILLS = ("after begin", "in a condition", "before commit", "after commit")


class Killed(SqliteConnection):
    """A connection whose process dies at a given moment."""

    moment = ""

    def begin(self, *, write: bool) -> None:
        super().begin(write=write)
        die_when(self.moment == "after begin" and write)

    def commit(self) -> None:
        # The table of markers is made in a transaction of its own, before.
        works = bool(self.own("SELECT 1 FROM books WHERE title = 'Ulysses'"))
        die_when(self.moment == "before commit" and works)
        super().commit()
        die_when(self.moment == "after commit" and works)


def work(client: SafeDatabaseClient, moment: str = "") -> Applied:
    def holds(view: ReadOnlyView) -> bool:
        die_when(moment == "in a condition")
        return view.exists("SELECT 1 FROM books WHERE title = 'Ulysses'")

    staged = client.staged()
    staged.stage("INSERT INTO books (title) VALUES ('Ulysses')")
    staged.stage("UPDATE books SET title = 'Emma II' WHERE title = 'Emma'")
    return staged.apply([Postcondition("it is there", holds)], marker=MARKER)


def die_when(now: bool) -> None:
    if now:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    connection = Killed(Path(sys.argv[1]))
    connection.moment = sys.argv[2]
    work(SafeDatabaseClient(connection), sys.argv[2])
