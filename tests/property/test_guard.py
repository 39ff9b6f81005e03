import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from signoff.contracts.guarded_db.guard import Guard
from signoff.contracts.guarded_db.verdict import Allowed, Dialect, Refused, StatementKind
from tests.unit.contracts.guarded_db.attacks import POSTGRES, SHARED, SQLITE, lines, runs
from tests.unit.contracts.guarded_db.honest import HONEST, SCHEMA

DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres")
GUARDS = {dialect: Guard(dialect) for dialect in DIALECTS}

READS = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
UNSPELLABLE = ("comments", "nonsense")
"""Attacks that other blanks turn into something harmless."""
STATEMENTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "VALUES")
WRAPPERS = (
    "SELECT * FROM ({}) AS x",
    "SELECT ({})",
    "WITH x AS ({}) SELECT * FROM x",
    "SELECT 1 UNION ALL {}",
    "SELECT 1 WHERE EXISTS ({})",
    "INSERT INTO books (title) {}",
    "UPDATE books SET title = ({}) WHERE id = 1",
    "({})",
    "SELECT 1; {}",
    "EXPLAIN {}",
)
PIECES = """
SELECT DELETE UPDATE INSERT INTO FROM books chapters WHERE id = 1 OR AND NOT ( ) , * ; -- /* */ '
'' "x" 'a;b' [x] `y` WITH x AS RETURNING SET title VALUES UNION ALL IN EXISTS NULL IS LIKE '%' ?
DROP TABLE PRAGMA ATTACH REPLACE ON CONFLICT DO NOTHING count(*) ORDER BY LIMIT CASE WHEN THEN END
\n \t || . $$ E'x\\' JOIN USING DEFAULT VALUES main.books EXPLAIN
""".split(" ")


@pytest.fixture(scope="module")
def library() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SCHEMA["sqlite"])
        # SQLite opens these by statements of its own, the first time.
        for name in ("pages", "json_each", "json_tree"):
            db.execute(f"SELECT 1 FROM {name} LIMIT 0")
        yield db


@given(sql=st.text(), dialect=st.sampled_from(DIALECTS))
@example(sql="SELECT '\ud800'", dialect="sqlite")
def test_any_text_is_judged_and_none_breaks_the_guard(sql: str, dialect: Dialect) -> None:
    """A statement that crashes the guard would stop the run."""
    assert isinstance(GUARDS[dialect].verdict(sql), Allowed | Refused)


@given(value=st.text(), dialect=st.sampled_from(DIALECTS))
def test_no_value_inside_quotes_changes_what_a_statement_is(value: str, dialect: Dialect) -> None:
    """A title such as `'); DROP TABLE books; --` is a title."""
    quoted = value.replace("'", "''").replace("\0", "")
    verdict = GUARDS[dialect].verdict(f"INSERT INTO books (title) VALUES ('{quoted}')")

    assert verdict == Allowed(StatementKind.INSERT, "books")


SPELLED = [
    (dialect, sql)
    for dialect, own in (("sqlite", SQLITE), ("postgres", POSTGRES))
    for text in (own, *(text for kind, text in SHARED.items() if kind not in UNSPELLABLE))
    for sql in lines(text)
]


@settings(max_examples=500)
@given(attack=st.sampled_from(SPELLED), seed=st.integers())
def test_no_spelling_of_an_attack_gets_through(attack: tuple[Dialect, str], seed: int) -> None:
    """Case, blanks and comments between words make no difference to a database."""
    dialect, sql = attack
    chance = random.Random(seed)
    blanks = [" ", "\n", "\t ", " /* x */ ", " -- WHERE id = 1\n", "\r\n"]
    words = [chance.choice([word.upper(), word.lower(), word]) for word in sql.split(" ")]

    spelled = "".join(word + chance.choice(blanks) for word in words)

    assert not runs(GUARDS[dialect].verdict(spelled))


@settings(max_examples=300)
@given(
    attack=st.sampled_from([each for each in SPELLED if each[1].startswith(STATEMENTS)]),
    wrapper=st.sampled_from(WRAPPERS),
)
def test_no_attack_gets_through_inside_another_statement(
    attack: tuple[Dialect, str], wrapper: str
) -> None:
    """A part of a statement is checked like the whole."""
    dialect, sql = attack

    assert not runs(GUARDS[dialect].verdict(wrapper.format(sql.rstrip("; "))))


@settings(max_examples=300)
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=14))
@example(pieces=["SELECT", "'a'", "||", "E'x\\'"])
def test_what_the_guard_takes_for_a_read_is_one_to_sqlite(
    library: sqlite3.Connection, pieces: list[str]
) -> None:
    """The guard reads with another parser than the database, and the two may disagree."""
    for sql in (" ".join(pieces), "SELECT " + " ".join(pieces)):
        if GUARDS["sqlite"].verdict(sql) == Allowed(StatementKind.READ):
            assert done_by(library, sql) <= READS, sql


@settings(max_examples=200)
@given(
    start=st.sampled_from([s for s in HONEST["sqlite"] if s.startswith(("SELECT", "WITH"))]),
    tail=st.lists(st.sampled_from(PIECES), min_size=1, max_size=5),
    cut=st.floats(0, 1),
)
def test_what_is_put_into_an_honest_read_does_not_make_it_a_change(
    library: sqlite3.Connection, start: str, tail: list[str], cut: float
) -> None:
    """Attacks are often hidden inside an allowed statement."""
    place = int(len(start) * cut)
    sql = f"{start[:place]} {' '.join(tail)} {start[place:]}"

    if GUARDS["sqlite"].verdict(sql) == Allowed(StatementKind.READ):
        assert done_by(library, sql) <= READS, sql


def done_by(db: sqlite3.Connection, sql: str) -> set[int]:
    """Returns what SQLite would do for a statement, without running it."""
    asked: set[int] = set()

    def note(action: int, name: str | None, *_details: object) -> int:
        if (action, name) == (sqlite3.SQLITE_PRAGMA, "data_version"):
            return sqlite3.SQLITE_OK  # what full-text search asks by itself
        asked.add(action)
        return sqlite3.SQLITE_OK if action in READS else sqlite3.SQLITE_DENY

    db.set_authorizer(note)
    with suppress(sqlite3.Error, sqlite3.Warning):
        db.execute(sql).close()
    db.set_authorizer(None)
    return asked
