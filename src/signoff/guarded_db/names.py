"""Collects the names in a parsed statement whose meaning only the database knows.

Whether `b.title` is a column or a call of a function, whether `lower(title)` is PostgreSQL's or
the project's own function, and whether a table is the inside of a search index: all of this
depends on the schema. The connection decides about these names.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.expressions import Expr as Expression

from signoff.guarded_db.verdict import Names


def collect_names(tree: Expression, called: frozenset[str]) -> Names:
    """Returns the names of a statement; `called` are those that its text has before parentheses."""
    tables = frozenset(_tables(tree))
    # A quoted name is not in the text without quotes.
    parsed = {name.lower() for call in tree.find_all(exp.Func) for name in _names_of(call)}
    # As they are written: PostgreSQL does not fold letters as Python does.
    values = {
        dot.expression.name
        for dot in tree.find_all(exp.Dot)
        if not isinstance(dot.expression, exp.Func | exp.Star)
    }
    rows: set[str] = set()
    # PostgreSQL also accepts `x.f` for `f(x)` if x is the value that a function in FROM returns.
    not_rows = set(_aliases_of_functions(tree))
    for column in tree.find_all(exp.Column):
        if column.table:
            found = values if column.table.lower() in not_rows else rows
            found.add(column.name)
    named = (sequence_of(call) for call in tree.find_all(exp.Anonymous))
    sequences = frozenset(name for name in named if name is not None)
    of_values = frozenset(values - {""})
    return Names((called - tables) | parsed, frozenset(rows), of_values, tables, sequences)


def sequence_of(call: exp.Func) -> str | None:
    """Returns the sequence that a call of `nextval` names; empty if its text does not show which.

    None means that it is another call.
    """
    if call.name.lower() != "nextval":
        return None
    named = call.expressions[0] if len(call.expressions) == 1 else None
    named = named.this if isinstance(named, exp.Cast) else named
    return str(named.this) if isinstance(named, exp.Literal) and named.is_string else ""


def _tables(tree: Expression) -> Iterator[str]:
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier):
            yield table.name.lower()


def _aliases_of_functions(tree: Expression) -> Iterator[str]:
    """Yields the names of what a statement reads from functions instead of tables."""
    for source in tree.find_all(exp.Table, exp.Unnest, exp.Lateral):
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            continue
        yield source.alias.lower()
        # Without an alias, the function's own name is that of the value.
        yield from (name.lower() for call in source.find_all(exp.Func) for name in _names_of(call))


def _names_of(call: exp.Func) -> list[str]:
    return [call.name] if isinstance(call, exp.Anonymous) else call.sql_names()
