import pytest

from signoff.guarded_db.guard import lex, named_parameters
from signoff.guarded_db.verdict import Dialect


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
