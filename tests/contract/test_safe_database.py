import inspect
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from signoff.contracts.guarded_db import staging
from signoff.contracts.guarded_db.client import SafeDatabaseClient, StagedStatements
from signoff.contracts.guarded_db.ports import Row
from signoff.contracts.guarded_db.staging import (
    Committed,
    Impact,
    Marker,
    Postcondition,
    RolledBack,
    Tables,
    Unconfirmed,
)
from signoff.contracts.guarded_db.verdict import Allowed, StatementKind
from signoff.core.errors import NotAllowed, StoreBusy, StoreError, UsageError
from signoff.testing import FrozenClock
from tests.contract.library import Library, postgres_library, sqlite_library
from tests.patience import PATIENCE_SECONDS
from tests.unit.contracts.guarded_db.attacks import (
    ATTACKS,
    EVERY_ROW,
    NEED_A_TOKEN,
    NEED_THE_SCHEMA,
    WIPERS,
    lines,
)
from tests.unit.contracts.guarded_db.honest import DELETES, HONEST, ORM_STATEMENTS

MARKER = Marker("run-1", "edit", 1)
BEFORE = ["Dune", "Emma"]
CONSTRAINT = re.compile("FOREIGN KEY|foreign key|UNIQUE|unique")


@pytest.fixture(params=["sqlite", "postgres"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Library:
    if request.param == "sqlite":
        return sqlite_library(tmp_path)
    return postgres_library(request.getfixturevalue("postgres"), tmp_path)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def db(library: Library, clock: FrozenClock) -> Iterator[SafeDatabaseClient]:
    with library.open(clock=clock.monotonic, patience=0.3) as client:
        yield client


def has(title: str) -> Postcondition:
    def holds(view: Tables) -> bool:
        return view.exists("SELECT 1 FROM books WHERE title = :title", {"title": title})

    return Postcondition(f"there is a book called {title}", holds)


def failing(name: str, holds: object) -> Postcondition:
    def check(_view: Tables) -> bool:
        if isinstance(holds, Exception):
            raise holds
        return holds  # type: ignore[return-value]  # what an author without types may return

    return Postcondition(name, check)


# Statements


def test_every_ordinary_statement_runs(db: SafeDatabaseClient, library: Library) -> None:
    """What the guard allows, the database's own line of defense must allow too."""
    refused = []

    for sql in HONEST[library.dialect]:
        try:
            db.execute(sql)
        except (NotAllowed, StoreError) as error:
            refused.append(f"{sql}: {error}")

    assert refused == []


@pytest.mark.parametrize("number", [0, 1], ids=["SQLAlchemy", "Django"])
def test_what_orms_send_runs(library: Library, number: int) -> None:
    """Each statement with its values, in the order of the session it was recorded from."""
    recorded = ORM_STATEMENTS[library.dialect][number]
    for sql in recorded["schema"]:
        library.change(sql)
    refused = []

    with library.open() as db:
        for sql, values in recorded["statements"]:
            try:
                confirm = db.get_confirmation(sql, values) if sql.startswith("DELETE") else None
                db.execute(sql, values, confirm=confirm)
            except (NotAllowed, StoreError) as error:
                # Each statement was recorded once, so some rows that later ones need are missing.
                if not CONSTRAINT.search(str(error)):
                    refused.append(f"{sql} {values}: {error}")

    assert refused == []


def test_no_attack_changes_anything(db: SafeDatabaseClient, library: Library) -> None:
    """This is what the guard is for."""
    through = []

    for sql in [*ATTACKS[library.dialect], *NEED_A_TOKEN]:
        try:
            db.execute(sql)
        except NotAllowed:
            continue
        through.append(sql)

    assert through == []
    assert library.titles() == BEFORE


def test_no_attack_that_only_the_schema_shows_changes_anything(library: Library) -> None:
    """The guard cannot know which names are functions, or how large a value gets."""
    if library.dialect == "postgres":
        library.change(WIPERS)
    through = []

    with library.open() as db:
        for sql in lines(NEED_THE_SCHEMA[library.dialect]):
            try:
                db.execute(sql)
            except NotAllowed:
                continue
            except StoreError as error:
                if "the result is larger than 64 MB" in str(error):
                    continue
            through.append(sql)

    assert through == []
    assert library.titles() == BEFORE
    assert len(library.rows("SELECT 1 FROM chapters")) == 3


def test_a_function_of_the_project_can_be_allowed(library: Library) -> None:
    """Computed columns are functions with a row as their argument."""
    if library.dialect == "sqlite":
        pytest.skip("SQLite has no such notation")
    library.change("CREATE FUNCTION shout(books) RETURNS text LANGUAGE sql RETURN upper($1.title)")
    sql = "SELECT b.shout, shout(b) AS again FROM books b WHERE id = 1"

    with library.open() as db, pytest.raises(NotAllowed, match="shout"):
        db.query(sql)
    with library.open(functions=["shout"]) as db:
        rows = db.query(sql)

    assert rows == ({"shout": "DUNE", "again": "DUNE"},)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE books SET title = 'x' WHERE id IN (1, 2)",
        "UPDATE books SET title = 'x' WHERE id IN (1, 2) RETURNING id",
        "WITH x AS (SELECT 2 AS id) UPDATE books SET title = 'x' WHERE id <= (SELECT id FROM x)",
        "INSERT INTO books (title) VALUES ('a'), ('b')",
        "INSERT INTO books (title) VALUES ('a'), ('b') RETURNING id",
        "WITH x AS (SELECT 'a' AS t UNION SELECT 'b') INSERT INTO books (title) SELECT t FROM x",
    ],
)
def test_the_number_of_changed_rows_is_true(db: SafeDatabaseClient, sql: str) -> None:
    """Conditions and confirmations rely on it; drivers don't count after WITH."""
    result = db.execute(sql)

    assert result.changed == 2
    assert len(result.rows) == (2 if "RETURNING" in sql else 0)
    assert db.execute("UPDATE books SET title = 'x' WHERE id = 999").changed == 0


def test_a_result_that_takes_too_much_memory_is_refused(
    db: SafeDatabaseClient, library: Library
) -> None:
    """A single query must not end the process."""
    db.execute("UPDATE books SET title = :long WHERE id = 1", {"long": "x" * 1_000_000})
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80) "
    rows = "SELECT b.title FROM books AS b, n WHERE b.id = 1"

    with pytest.raises(StoreError, match="larger than 64 MB"):
        db.query(numbers + rows)

    assert db.query("SELECT count(*) AS n FROM books") == ({"n": 2},)


def test_values_are_bound_by_position_and_by_name(db: SafeDatabaseClient, library: Library) -> None:
    """Values that are pasted into a statement can change it."""
    hostile = "'; DROP TABLE books; --"

    db.execute(f"INSERT INTO books (title) VALUES ({library.place(1)})", [hostile])
    rows = db.query(
        "SELECT title FROM books WHERE title = :title OR title = :title", {"title": hostile}
    )

    assert rows == ({"title": hostile},)


def test_a_query_only_reads(db: SafeDatabaseClient, library: Library) -> None:
    """Conditions use queries and must not be able to change anything."""
    for sql in (
        "UPDATE books SET title = 'x' WHERE id = 1",
        "INSERT INTO books (title) VALUES ('x')",
    ):
        with pytest.raises(NotAllowed, match="only reading"):
            db.query(sql)
        with pytest.raises(NotAllowed, match="only reading"):
            db.read_only().query(sql)

    assert library.titles() == BEFORE


def test_a_view_returns_rows_one_row_a_value_or_whether_any_exist(db: SafeDatabaseClient) -> None:
    """Conditions would be full of indexing otherwise."""
    view = db.read_only()

    rows: tuple[Row, ...] = view.query("SELECT id, title FROM books ORDER BY id")

    assert rows == ({"id": 1, "title": "Dune"}, {"id": 2, "title": "Emma"})
    assert view.one("SELECT title FROM books WHERE id = 2") == {"title": "Emma"}
    assert view.one("SELECT title FROM books WHERE id = 3") is None
    assert view.value("SELECT count(*) FROM books") == 2
    assert view.value("SELECT title FROM books WHERE id = 3") is None
    assert view.exists("SELECT 1 FROM books")


def test_an_error_of_the_database_is_passed_on(db: SafeDatabaseClient) -> None:
    """An agent can fix a wrong column only if the error names it."""
    with pytest.raises(StoreError, match="no_such_column"):
        db.query("SELECT no_such_column FROM books")
    with pytest.raises(StoreError):
        db.execute("INSERT INTO books (id) VALUES (1)")

    assert db.query("SELECT 1 AS one") == ({"one": 1},)


# Deletes


@pytest.mark.parametrize("where", DELETES)
def test_a_confirmed_delete_runs_once(db: SafeDatabaseClient, library: Library, where: str) -> None:
    """Nothing could ever be deleted otherwise, or everything again and again."""
    there = len(library.rows(f"SELECT 1 FROM books WHERE {where}"))
    confirmation = db.get_delete_confirmation("books", where)

    deleted = db.delete("books", where, confirm=confirmation.token)

    assert confirmation.rows == deleted == there
    with pytest.raises(NotAllowed, match="used before"):
        db.execute(f"DELETE FROM books WHERE {where}", confirm=confirmation)


@pytest.mark.parametrize(
    ("table", "where"),
    [
        ("books", "id = 1; DROP TABLE books"),
        ("books; DROP TABLE books; --", "id = 1"),
        ("books -- ", "id = 1"),
        ("books WHERE id > 0 --", "id = 1"),
        ("books WHERE id > 0 /*", "id = 1 */"),
        ('books" WHERE id > 0 --', "id = 1"),
        ("books AS b", "b.id = 1"),
        ("main.nothing", "id = 1"),
        ("nothing", "id = 1"),
        ("signoff_steps", "run = 'x'"),
    ],
)
def test_there_is_no_token_for_a_refused_statement(
    db: SafeDatabaseClient, table: str, where: str
) -> None:
    """A confirmation must not bypass the guard."""
    with pytest.raises(NotAllowed):
        db.get_delete_confirmation(table, where)
    with pytest.raises(NotAllowed):
        db.delete(table, where, confirm="a token")


def test_the_name_of_a_table_may_be_any(db: SafeDatabaseClient, library: Library) -> None:
    """Quoted, it is nothing but a name; a schema may be in front of it."""
    schema = "main" if library.dialect == "sqlite" else "public"
    library.change('CREATE TABLE "order" (id INTEGER)')
    library.change('INSERT INTO "order" VALUES (1), (2)')

    for table in ("order", f"{schema}.order"):
        one = db.get_delete_confirmation(table, 'id IN (SELECT min(id) FROM "order")')
        db.delete(table, 'id IN (SELECT min(id) FROM "order")', confirm=one)

    assert library.rows('SELECT id FROM "order"') == []


def test_forbidden_operations_are_refused_with_an_alternative(
    db: SafeDatabaseClient, library: Library
) -> None:
    """The calls exist so that the refusal can say what to use instead."""
    with pytest.raises(NotAllowed, match="migration"):
        db.drop_table("books")
    with pytest.raises(NotAllowed, match="confirmation"):
        db.truncate_table("books")
    with pytest.raises(NotAllowed, match="by hand"):
        db.delete_database()

    assert library.titles() == BEFORE


# A step's work


def test_a_steps_statements_are_applied_together_and_marked(
    db: SafeDatabaseClient, library: Library
) -> None:
    """The journal records the commit a moment later; until then the marker tells."""
    work = db.staged()
    work.stage("INSERT INTO books (title) VALUES (:title)", {"title": "Ulysses"})
    work.stage("UPDATE books SET title = 'Emma II' WHERE title = 'Emma'")
    assert library.titles() == BEFORE

    applied = work.apply([has("Ulysses"), has("Emma II")], marker=MARKER)

    assert applied == Committed(changed=2)
    assert sorted(library.titles()) == ["Dune", "Emma II", "Ulysses"]
    assert db.done(MARKER)
    assert not db.done(Marker("run-1", "edit", 2))


def test_finished_work_is_not_done_again(library: Library) -> None:
    """A crash between the commit and the journal would double every row."""
    for attempt in range(2):
        with library.open() as db:
            work = db.staged()
            work.stage("INSERT INTO books (title) VALUES ('Ulysses')")
            applied = work.apply([has("Ulysses")], marker=("run-1", "edit", 1))
            assert applied == Committed(changed=1 - attempt, already=bool(attempt))

    assert library.titles().count("Ulysses") == 1


def test_the_note_of_finished_work_is_found_again(db: SafeDatabaseClient, library: Library) -> None:
    """After a crash the step's result would be lost although its work is there."""
    work = db.staged()
    work.stage("INSERT INTO books (title) VALUES ('Ulysses')")
    assert db.notes([MARKER]) == [None]

    work.apply([failing("no", False)], marker=MARKER, note="undone")
    assert db.notes([MARKER]) == [None]
    work.apply([], marker=MARKER, note="first")
    work.apply([], marker=MARKER, note="second")

    assert db.notes([MARKER]) == ["first"]


def test_each_item_of_a_fan_out_has_a_marker_of_its_own(
    db: SafeDatabaseClient, library: Library
) -> None:
    """The first item must not count for all of them."""
    for item in ("a", "b", "a"):
        work = db.staged()
        work.stage("INSERT INTO books (title) VALUES (:item)", {"item": item})
        work.apply([], marker=Marker("run-1", "edit", 1, item))

    assert sorted(library.titles()) == ["Dune", "Emma", "a", "b"]


def test_every_condition_that_does_not_hold_is_named_and_nothing_stays(
    db: SafeDatabaseClient, library: Library
) -> None:
    """The next attempt must get all problems."""
    work = db.staged()
    work.stage("INSERT INTO books (title) VALUES ('Ulysses')")
    explodes = failing("explodes", ValueError("boom"))
    line = inspect.getsourcelines(explodes.holds)[1] + 2

    applied = work.apply(
        [
            has("Ulysses"),
            has("Middlemarch"),
            explodes,
            failing("forgot to return", None),
            failing("is only truthy", 1),
        ],
        marker=MARKER,
    )

    assert applied == RolledBack(
        (
            "there is a book called Middlemarch: does not hold",
            f"explodes: raised ValueError: boom (test_safe_database.py:{line})",
            "forgot to return: returned None instead of True or False",
            "is only truthy: returned 1 instead of True or False",
        )
    )
    assert library.titles() == BEFORE
    assert not db.done(MARKER)


def test_work_that_was_rolled_back_can_be_tried_again(
    db: SafeDatabaseClient, library: Library
) -> None:
    """A failed attempt must leave no marker behind."""
    work = db.staged()
    work.stage("INSERT INTO books (title) VALUES ('Ulysses')")
    assert isinstance(work.apply([failing("no", False)], marker=MARKER), RolledBack)

    assert work.apply([has("Ulysses")], marker=MARKER) == Committed(changed=1)
    assert "Ulysses" in library.titles()


def test_a_statement_that_fails_undoes_those_before_it(
    db: SafeDatabaseClient, library: Library
) -> None:
    """Half of a step's work is worse than none."""
    work = db.staged()
    work.stage("INSERT INTO books (title) VALUES ('Ulysses')")
    work.stage("INSERT INTO chapters (book, n) VALUES (999, 1)")

    applied = work.apply([], marker=MARKER)

    assert isinstance(applied, RolledBack)
    assert "statement 2 of 2 (INSERT INTO chapters" in str(applied)
    assert library.titles() == BEFORE


def test_an_endless_query_of_a_condition_is_aborted(
    db: SafeDatabaseClient, library: Library
) -> None:
    """The database would stay locked for every process."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    work = db.staged()
    work.stage("INSERT INTO books (title) VALUES ('Ulysses')")

    applied = work.apply(
        [Postcondition("endless", lambda view: view.exists(endless))], marker=MARKER, seconds=0.2
    )

    assert applied == RolledBack(("endless: took more than 0.2 seconds",))
    assert library.titles() == BEFORE
    assert db.query("SELECT 1 AS one") == ({"one": 1},)


def test_a_condition_that_hangs_is_abandoned(
    db: SafeDatabaseClient, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot read the database any more when it wakes up."""
    monkeypatch.setattr(staging, "_GRACE_SECONDS", 0.01)
    woken, messages, over = threading.Event(), [], threading.Event()

    def hang(view: Tables) -> bool:
        woken.wait(PATIENCE_SECONDS)
        try:
            view.query("SELECT 1")
        except UsageError as error:
            messages.append(str(error))
        over.set()
        return True

    work = db.staged()
    work.stage("INSERT INTO books (title) VALUES ('Ulysses')")
    applied = work.apply([Postcondition("hangs", hang)], marker=MARKER, seconds=0.1)
    woken.set()
    over.wait(PATIENCE_SECONDS)

    assert isinstance(applied, RolledBack)
    assert library.titles() == BEFORE
    assert messages[0].startswith("this view of the database is closed")


def test_a_condition_cannot_change_what_it_checks(db: SafeDatabaseClient, library: Library) -> None:
    """It must not make itself true."""

    def cheat(view: Tables) -> bool:
        view.query("INSERT INTO books (title) VALUES ('Ulysses')")
        return True

    applied = db.staged().apply([Postcondition("cheats", cheat)], marker=MARKER)

    assert isinstance(applied, RolledBack)
    assert "only reading" in str(applied)
    assert library.titles() == BEFORE


def test_not_even_an_allowed_change_runs_inside_a_condition(
    db: SafeDatabaseClient, library: Library
) -> None:
    """The database itself only allows reading from then on."""

    def cheat(_view: Tables) -> bool:
        insert = "INSERT INTO books (title) VALUES ('Ulysses')"
        db._db.run(insert, (), Allowed(StatementKind.INSERT, "books"))
        return True

    applied = db.staged().apply([Postcondition("cheats", cheat)], marker=MARKER)

    assert isinstance(applied, RolledBack)
    assert library.titles() == BEFORE


def test_a_refused_statement_is_refused_when_it_is_staged(db: SafeDatabaseClient) -> None:
    """The submitter gets the error at once, before a transaction is opened."""
    work = db.staged()

    with pytest.raises(NotAllowed, match="migrat"):
        work.stage("DROP TABLE books")
    with pytest.raises(UsageError, match="query"):
        work.stage("SELECT 1")
    assert len(work) == 0


def test_a_confirmed_delete_can_be_part_of_a_steps_work(
    db: SafeDatabaseClient, library: Library
) -> None:
    """A step that replaces something deletes the old one."""
    work = db.staged()
    work.stage("DELETE FROM books WHERE title = 'Emma'")
    assert work.apply([], marker=MARKER) == Unconfirmed()
    assert library.titles() == BEFORE

    (impact,) = measured(work)
    applied = work.apply([], marker=MARKER, confirmed=[impact])

    assert (impact.table, impact.rows, impact.others) == ("books", 1, 1)
    assert applied == Committed(changed=1)
    assert library.titles() == ["Dune"]


def measured(work: StagedStatements) -> tuple[Impact, ...]:
    impacts = work.measure()
    assert isinstance(impacts, tuple)
    return impacts


def test_rows_are_counted_again_when_a_confirmed_change_is_applied(
    db: SafeDatabaseClient, library: Library
) -> None:
    """A human confirmed two books; a third may be an important one."""
    work = db.staged()
    work.stage("DELETE FROM books WHERE price > 0")
    impacts = measured(work)
    db.execute("INSERT INTO books (title, price) VALUES ('Ulysses', 9)")

    applied = work.apply([], marker=MARKER, confirmed=impacts)

    assert isinstance(applied, RolledBack)
    assert "3 rows of books" in str(applied)
    assert "2 rows of books" in str(applied)
    assert len(library.titles()) == 3


def test_rows_of_other_tables_count_too(db: SafeDatabaseClient, library: Library) -> None:
    """One book may take hundreds of chapters with it."""
    work = db.staged()
    work.stage("DELETE FROM books WHERE id = 1")
    impacts = measured(work)
    db.execute("INSERT INTO chapters (book, n) VALUES (1, 3)")

    applied = work.apply([], marker=MARKER, confirmed=impacts)

    assert [(each.rows, each.others) for each in impacts] == [(1, 2)]
    assert isinstance(applied, RolledBack)
    assert "3 rows of other tables" in str(applied)
    assert library.titles() == BEFORE


def test_a_confirmation_counts_for_one_statement_with_its_values(
    db: SafeDatabaseClient, library: Library
) -> None:
    """A confirmation of one row must not cover a loop."""
    sql = "DELETE FROM books WHERE id = :id"
    one, twice, other = db.staged(), db.staged(), db.staged()
    one.stage(sql, {"id": 1})
    twice.stage(sql, {"id": 1})
    twice.stage(sql, {"id": 1})
    other.stage(sql, {"id": 2})
    impacts = measured(one)

    assert twice.apply([], marker=MARKER, confirmed=impacts) == Unconfirmed()
    assert other.apply([], marker=MARKER, confirmed=impacts) == Unconfirmed()
    assert library.titles() == BEFORE


def test_a_change_of_every_row_of_a_table_of_ten_is_recognized_by_any_condition(
    db: SafeDatabaseClient, library: Library
) -> None:
    """No list of conditions that are always true is complete, so the rows are counted."""
    for number in range(8):
        db.execute("INSERT INTO books (title, price) VALUES (:title, 1)", {"title": f"b{number}"})
    before = library.titles()
    through = []

    for sql in lines(EVERY_ROW):
        try:
            db.execute(sql)
        except (NotAllowed, StoreError):
            # One of the two databases does not know each of them.
            continue
        through.append(sql)

    assert through == []
    assert library.titles() == before


def test_a_change_of_every_row_of_a_table_of_ten_has_to_be_confirmed(
    db: SafeDatabaseClient, library: Library
) -> None:
    """A human sees how many rows there are."""
    sql = "UPDATE books SET title = 'x' WHERE id > 0"
    titles = [f"book {number}" for number in range(8)]
    for title in titles:
        db.execute("INSERT INTO books (title, price) VALUES (:title, 1)", {"title": title})
    work = db.staged()
    work.stage(sql)

    with pytest.raises(NotAllowed, match=r"get_confirmation"):
        db.execute(sql)
    undone = work.apply([], marker=MARKER)
    unchanged = library.titles()
    confirmation = db.get_confirmation(sql)
    still_unchanged = library.titles()
    done = db.execute(sql, confirm=confirmation)

    assert undone == Unconfirmed()
    assert unchanged == still_unchanged == [*BEFORE, *titles]
    assert confirmation.rows == done.changed == 10
    assert set(library.titles()) == {"x"}


def test_other_changes_need_no_confirmation(db: SafeDatabaseClient, library: Library) -> None:
    """A confirmation for everything would be given without looking."""
    few = db.execute("UPDATE books SET title = 'x' WHERE id > 0")
    rows = ", ".join(f"({number}, 'b')" for number in range(10, 30))
    new = db.execute(
        f"INSERT INTO books (id, title) VALUES {rows} ON CONFLICT (id) DO UPDATE SET title = 'c'"
    )
    most = db.execute("UPDATE books SET title = 'y' WHERE id > 1")

    assert (few.changed, new.changed, most.changed) == (2, 20, 21)


def test_a_token_is_bound_to_the_rows_that_were_seen(
    db: SafeDatabaseClient, library: Library
) -> None:
    """As many rows may be other ones."""
    sql = "DELETE FROM books WHERE title LIKE 'D%'"
    confirmation = db.get_confirmation(sql)
    db.execute("UPDATE books SET title = 'Emma' WHERE id = 1")
    db.execute("UPDATE books SET title = 'Dune' WHERE id = 2")

    with pytest.raises(NotAllowed, match="have changed since"):
        db.execute(sql, confirm=confirmation)

    assert confirmation.rows == 1
    assert sorted(library.titles()) == BEFORE


def test_a_database_locked_by_another_process_is_reported_and_left_alone(
    db: SafeDatabaseClient, library: Library
) -> None:
    """The run stays where it was and can be resumed."""
    db.done(MARKER)
    work = db.staged()
    work.stage("UPDATE books SET title = 'New' WHERE id = 1")
    work.apply([failing("the table of markers is created", False)], marker=MARKER)

    with closing(library.connect()) as other:
        other.execute("BEGIN")
        other.execute("UPDATE books SET price = 1 WHERE id = 1")
        with pytest.raises(StoreBusy, match="locked"):
            work.apply([], marker=MARKER)
        other.execute("ROLLBACK")

    assert library.titles() == BEFORE
    assert isinstance(work.apply([has("New")], marker=MARKER), Committed)


def test_many_threads_take_turns(db: SafeDatabaseClient, library: Library) -> None:
    """Items of a fan-out may end at the same time."""
    results: list[object] = []

    def one(number: int) -> None:
        work = db.staged()
        work.stage("INSERT INTO books (title) VALUES (:n)", {"n": f"book {number}"})
        item = Marker("run-1", "edit", 1, str(number))
        results.append(work.apply([has(f"book {number}")], marker=item))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [Committed(changed=1)] * 8
    assert len(library.titles()) == 10


def test_two_processes_that_do_the_same_work_do_it_once(library: Library) -> None:
    """A process that seemed dead may wake up."""
    results = []

    def one() -> None:
        with library.open() as db:
            work = db.staged()
            work.stage("INSERT INTO books (title) VALUES ('Ulysses')")
            results.append(work.apply([has("Ulysses")], marker=MARKER))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(result.changed for result in results if isinstance(result, Committed)) == [
        0,
        0,
        0,
        1,
    ]
    assert library.titles().count("Ulysses") == 1
