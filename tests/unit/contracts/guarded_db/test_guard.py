import pytest

from signoff.contracts.guarded_db.guard import (
    CACHED_CHARACTERS,
    MOST_CHARACTERS,
    Guard,
    lex,
    named_parameters,
)
from signoff.contracts.guarded_db.verdict import Allowed, Dialect, Refused, StatementKind
from signoff.core.errors import NotAllowed
from tests.tables import table
from tests.unit.contracts.guarded_db.attacks import (
    ATTACKS,
    CALLS,
    NEED_A_TOKEN,
    PLACES,
    lines,
    runs,
)

DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres")


@pytest.fixture(params=DIALECTS)
def guard(request: pytest.FixtureRequest) -> Guard:
    return Guard(request.param)


def test_every_known_attack_is_refused(guard: Guard) -> None:
    """An agent's mistake, or an injected text, must not damage the user's data."""
    attacks = ATTACKS[guard.dialect]

    through = [sql for sql in attacks if runs(guard.verdict(sql))]

    assert len(attacks) >= 150
    assert through == []


def test_a_forbidden_call_is_refused_wherever_it_is(guard: Guard) -> None:
    """A part of a statement that is not looked at would be the way around the guard."""
    # In SQLite, brackets are quotes.
    places = [each for each in lines(PLACES) if guard.dialect == "postgres" or "[" not in each]
    statements = [place.format(call) for place in places for call in lines(CALLS)]

    through = [sql for sql in statements if runs(guard.verdict(sql))]
    harmless = [place.format("lower('x')") for place in places]

    assert through == []
    assert sum(runs(guard.verdict(sql)) for sql in harmless) > 25


@pytest.mark.parametrize("sql", NEED_A_TOKEN)
def test_a_delete_of_selected_rows_is_recognized(guard: Guard, sql: str) -> None:
    """Only then can it be refused until it is confirmed."""
    verdict = guard.verdict(sql)

    assert isinstance(verdict, Allowed)
    assert (verdict.kind, verdict.table) == (StatementKind.DELETE, "books")


@table(
    ("sql", "instead"),
    [
        ("DROP TABLE books", "numbered migration"),
        ("ALTER TABLE books ADD x int", "numbered migration"),
        ("CREATE TABLE x (a int)", "numbered migration"),
        ("TRUNCATE books", "use DELETE"),
        ("INSERT OR REPLACE INTO books VALUES (1)", "ON CONFLICT"),
        ("REPLACE INTO books VALUES (1)", "ON CONFLICT"),
        ("SELECT 1; SELECT 2", "on its own"),
        ("BEGIN", "one transaction"),
        ("PRAGMA foreign_keys = OFF", "leave it out"),
        ("SELECT wipe()", "the guard's functions"),
        ("EXPLAIN ANALYZE DELETE FROM books", "runs what it explains"),
    ],
)
def test_a_refusal_says_what_to_use_instead(sql: str, instead: str) -> None:
    """Without advice, an agent tries the next bad statement."""
    for dialect in DIALECTS:
        with pytest.raises(NotAllowed) as refused:
            Guard(dialect).check(sql)

        assert instead in str(refused.value), dialect
        assert sql[:20] in str(refused.value), dialect


def test_a_projects_own_functions_are_allowed_by_name() -> None:
    """Extensions such as vector search must be usable."""
    guard = Guard("postgres", functions=["cosine_distance", "app.rank_of"])

    verdicts = [
        guard.verdict("SELECT Cosine_Distance(a, b) FROM t"),
        guard.verdict("SELECT app.rank_of(a) FROM t"),
        guard.verdict("SELECT rank_of(a) FROM t"),
        guard.verdict("SELECT evil.cosine_distance(a) FROM t"),
    ]

    assert [type(verdict) for verdict in verdicts] == [Allowed, Allowed, Refused, Refused]


def test_verdicts_are_cached_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that runs for months must not store every statement it ever saw."""
    monkeypatch.setattr("signoff.contracts.guarded_db.guard.CACHED_STATEMENTS", 2)
    guard = Guard("sqlite")
    first = guard.verdict("SELECT 0")
    long = f"SELECT '{'x' * CACHED_CHARACTERS}'"

    assert guard.verdict("SELECT 0") is first
    assert guard.verdict(long) is not guard.verdict(long)
    guard.verdict("SELECT 1")
    guard.verdict("SELECT 2")
    assert guard.verdict("SELECT 0") is not first


def test_the_parser_writes_nothing_to_the_terminal(
    guard: Guard, caplog: pytest.LogCaptureFixture
) -> None:
    """Its warnings would disturb the live view."""
    for sql in ATTACKS[guard.dialect]:
        guard.verdict(sql)

    assert caplog.records == []


def test_a_huge_statement_is_refused_without_parsing(guard: Guard) -> None:
    """Parsing it would take too long."""
    verdict = guard.verdict("SELECT '" + "x" * MOST_CHARACTERS + "'")

    assert isinstance(verdict, Refused)
    assert "parameters" in verdict.instead


def test_the_same_rows_are_the_same_scope_however_they_are_written(guard: Guard) -> None:
    """A token must not depend on spaces, comments and the case of keywords."""
    spellings = [
        "DELETE FROM books WHERE id = 1",
        "delete  from books /* these */ where id=1 returning title;",
        "Delete From BOOKS Where ID = 1",
    ]

    verdicts = [guard.verdict(sql) for sql in spellings]

    scopes = {verdict.scope for verdict in verdicts if isinstance(verdict, Allowed)}
    assert scopes == {"DELETE FROM books WHERE id = 1"}


@pytest.mark.parametrize(
    ("dialect", "sql", "bare"),
    [
        ("sqlite", "a 'x;y' b", "a       b"),
        ("sqlite", "a 'it''s' b", "a         b"),
        ("sqlite", "a [x;y] `z;` b", "a            b"),
        ("sqlite", "a -- x;\nb", "a      \nb"),
        ("sqlite", r"a 'x\' b", "a      b"),
        ("postgres", "a $$x;y$$ b", "a         b"),
        ("postgres", "a $t$ $$ $t$ b", "a            b"),
        ("postgres", r"a E'x\';' b", "a         b"),
        ("postgres", r"a 'x\' b", "a      b"),
        ("postgres", "a [1] b", "a [1] b"),
        ("postgres", "a$$ b $$", "a$$ b $$"),
    ],
)
def test_quotes_and_comments_are_read_as_the_database_reads_them(
    dialect: Dialect, sql: str, bare: str
) -> None:
    """A statement that is mistaken for quoted text would run unchecked."""
    assert lex(sql, dialect).bare == bare


@pytest.mark.parametrize(
    "sql", ["/* a /* b */", "*/", "'open", '"open', "a\rb", "a\u00a0b", "\u017fELECT", "a\x0bb"]
)
def test_ambiguous_texts_are_reported(sql: str) -> None:
    """They would be checked as one statement and run as another."""
    assert lex(sql, "postgres").oddity()


@pytest.mark.parametrize("sql", ["größe", "naïve", "名前", "a\r\nb", "'\u00a0'", "-- \u2028 x"])
def test_names_and_texts_in_other_languages_are_valid(sql: str) -> None:
    """Most users do not write English."""
    assert not lex(sql, "sqlite").oddity()


def test_named_parameters_are_found_outside_of_quotes_only() -> None:
    """A colon in a text or a cast is not a parameter."""
    sql = "SELECT ':no', a::text, $$ :no $$ FROM t WHERE b = :yes AND c=:also -- :no"

    assert [found[1] for found in named_parameters(sql, "postgres")] == ["yes", "also"]
