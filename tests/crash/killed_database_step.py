"""Does the work of a step on a database, and kills itself at one of the moments in KILLS."""

import os
import signal
import sys
from typing import Any

from signoff.contracts.guarded_db.client import SafeDatabaseClient, connect
from signoff.contracts.guarded_db.ports import Connection, read_address
from signoff.contracts.guarded_db.staging import (
    Applied,
    Marker,
    Postcondition,
    StepWork,
    Tables,
    apply_together,
)
from signoff.contracts.guarded_db.verdict import Allowed, Params

MARKER = Marker("run-1", "edit", 1)
KILLS = (
    "after begin",
    "after a statement",
    "after the last statement",
    "in a condition",
    "before commit",
    "after commit",
)
GROUP_KILLS = ("in the second step", "before the commit of all", "after the commit of all")
STATEMENTS = (
    "INSERT INTO books (title) VALUES ('Ulysses')",
    "UPDATE books SET title = 'Emma II' WHERE title = 'Emma'",
)


class KillingConnection:
    """A connection that kills its process at a given moment of the transaction with the work."""

    def __init__(self, connection: Connection, moment: str) -> None:
        self._db = connection
        self._moment = moment
        self._ran = 0
        self._added = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def begin(self, **options: Any) -> None:
        self._db.begin(**options)
        # An earlier transaction creates the table of markers; it is not the one to be killed.
        is_work = options["write"] and self._db.own_table("signoff_steps") is not None
        kill_if(self._moment == "after begin" and is_work)

    def run(self, sql: str, params: Params, allowed: Allowed) -> Any:
        result = self._db.run(sql, params, allowed)
        self._ran += sql in STATEMENTS
        self._added += bool(params)
        kill_if(self._moment == "after a statement" and self._ran == 1)
        kill_if(self._moment == "after the last statement" and self._ran == 2)
        return result

    def commit(self) -> None:
        kill_if(self._moment == "before commit" and self._ran == 2)
        kill_if(self._moment == "before the commit of all" and self._added == 3)
        self._db.commit()
        kill_if(self._moment == "after commit" and self._ran == 2)
        kill_if(self._moment == "after the commit of all" and self._added == 3)


def do_step(client: SafeDatabaseClient, moment: str = "") -> Applied:
    def holds(view: Tables) -> bool:
        kill_if(moment == "in a condition")
        return view.exists("SELECT 1 FROM books WHERE title = 'Ulysses'")

    staged = client.staged()
    for sql in STATEMENTS:
        staged.stage(sql)
    return staged.apply([Postcondition("it is there", holds)], marker=MARKER)


def do_group(client: SafeDatabaseClient, moment: str) -> list[Applied]:
    """Does the work of three steps with one commit."""

    def work(number: int) -> StepWork:
        staged = client.staged()
        staged.stage("INSERT INTO books (title) VALUES (?)", [f"Book {number}"])

        def holds(_view: Tables) -> bool:
            kill_if(moment == "in the second step" and number == 2)
            return True

        conditions = [Postcondition("it is there", holds, quick=True)]
        return StepWork(staged._statements, conditions, group_marker(number))

    return apply_together(client._db, client.query, [work(number) for number in (1, 2, 3)])


def group_marker(number: int) -> Marker:
    return Marker("run-1", "add", 1, str(number))


def kill_if(condition: bool) -> None:
    if condition:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    address, moment = sys.argv[1:]
    killing: Any = KillingConnection(connect(read_address(address)), moment)
    do = do_group if moment in GROUP_KILLS else do_step
    do(SafeDatabaseClient(killing), moment)
