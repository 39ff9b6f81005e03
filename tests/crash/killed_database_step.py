"""Does the work of a step on a database, and kills itself at one of the moments in KILLS."""

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


class KillingConnection(SqliteConnection):
    """A connection that kills its process at a given moment."""

    moment = ""

    def begin(self, *, write: bool) -> None:
        super().begin(write=write)
        kill_if(self.moment == "after begin" and write)

    def commit(self) -> None:
        # An earlier transaction creates the table of markers; it is not the one to be killed.
        has_work = bool(self.own("SELECT 1 FROM books WHERE title = 'Ulysses'"))
        kill_if(self.moment == "before commit" and has_work)
        super().commit()
        kill_if(self.moment == "after commit" and has_work)


def do_step(client: SafeDatabaseClient, moment: str = "") -> Applied:
    def holds(view: ReadOnlyView) -> bool:
        kill_if(moment == "in a condition")
        return view.exists("SELECT 1 FROM books WHERE title = 'Ulysses'")

    staged = client.staged()
    staged.stage("INSERT INTO books (title) VALUES ('Ulysses')")
    staged.stage("UPDATE books SET title = 'Emma II' WHERE title = 'Emma'")
    return staged.apply([Postcondition("it is there", holds)], marker=MARKER)


def kill_if(condition: bool) -> None:
    if condition:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    connection = KillingConnection(Path(sys.argv[1]))
    connection.moment = sys.argv[2]
    do_step(SafeDatabaseClient(connection), sys.argv[2])
