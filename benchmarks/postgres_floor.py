"""The floor on PostgreSQL: the same rows written with psycopg by hand, without an engine.

One statement and one commit per step; rows that are ready at the same time share one statement
with arrays. Texts are stored as they are, like those of the engine: the server would compress the
repetitive texts of the workloads to almost nothing, and so write a tenth to a sixth of the bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from benchmarks import sample, stores
from benchmarks.floor_works import Row, floor_works

INSERT_MANY = """
INSERT INTO steps (run, step, text) SELECT * FROM unnest(%b::text[], %b::text[], %b::text[])
"""


class PostgresFloor:
    """The schema of a folder, with the table of the floor."""

    def __init__(self, folder: Path) -> None:
        self._db: psycopg.Connection[Any] = psycopg.connect(stores.server_url(), autocommit=True)
        self._db.prepare_threshold = 1
        schema = stores.schema_of(folder)
        self._db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        self._db.execute(f"SET search_path = {schema}")
        columns = (
            "id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run text, step text, text text"
        )
        # Without a target this high, the server would move every text into a second table.
        options = "WITH (toast_tuple_target = 8160)"
        self._db.execute(f"CREATE TABLE IF NOT EXISTS steps ({columns}) {options}")
        self._db.execute("ALTER TABLE steps ALTER COLUMN text SET STORAGE EXTERNAL")
        self.close = self._db.close

    def put(self, rows: list[Row]) -> None:
        """Writes rows in one commit."""
        if len(rows) == 1:
            self._db.execute("INSERT INTO steps (run, step, text) VALUES (%s, %s, %s)", rows[0])
            return
        self._db.execute(INSERT_MANY, [list(column) for column in zip(*rows, strict=True)])

    def add_gates(self, count: int) -> None:
        """Creates the table of runs that wait, with that many of them."""
        for statement in (
            "CREATE TABLE gates (id bigint PRIMARY KEY, run text, question text, answer text)",
            "CREATE INDEX ON gates (id) WHERE answer IS NULL",
            "CREATE UNIQUE INDEX ON gates (run)",
        ):
            self._db.execute(statement)
        rows = "SELECT n, 'run-' || n, 'Ship this?' FROM generate_series(1, %s) n"
        self._db.execute(f"INSERT INTO gates {rows}", [count])

    def waiting(self) -> list[tuple[int, str, str]]:
        """Returns number, run and question of all that wait."""
        sql = "SELECT id, run, question FROM gates WHERE answer IS NULL"
        return self._db.execute(sql).fetchall()

    def answer(self, run: str) -> None:
        """Stores the answer to the question of a run."""
        self._db.execute("UPDATE gates SET answer = 'yes' WHERE run = %s AND answer IS NULL", [run])


WORKS = floor_works(PostgresFloor)

if __name__ == "__main__":
    sample.main(WORKS)
