"""Checks a parsed statement: its kind, its parts, its tables and its functions.

A statement that deletes, or has no condition, is not refused here: its verdict says so, and it
needs a confirmation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from sqlglot import exp
from sqlglot.expressions import Expr as Expression

from signoff.contracts.guarded_db.verdict import (
    ALLOWED,
    OWN_TABLES,
    SEND_ONE_STATEMENT,
    USE_PLAIN_STATEMENT,
    USE_UPSERT,
    Allowed,
    Dialect,
    Names,
    Refused,
    StatementKind,
    Verdict,
)

_PARTS: dict[type[Expression], frozenset[str]] = {
    exp.Select: frozenset(
        "with expressions distinct from laterals joins where group having windows order limit "
        "offset kind".split()
    ),
    exp.Insert: frozenset("with this expression conflict returning default alternative".split()),
    exp.Update: frozenset("with this expressions from where returning".split()),
    exp.Delete: frozenset("with this using where returning".split()),
}
"""The parts that a statement may have; any other one is refused, known to the parser or not."""

_STRUCTURE = tuple(
    getattr(exp, name)
    for name in """
Query Values Tuple Table TableAlias From Join Lateral Where Group GroupingSets Cube Rollup Having
Order Ordered Limit LimitOptions Fetch Offset With CTE Identifier Alias Aliases Star Window
WindowSpec WithinGroup Filter Distinct Collate DataType DataTypeParam Interval IntervalSpan Var
Returning OnConflict Schema ColumnDef PropertyEQ JSONPath JSONPathPart JSONKeyValue Slice Bracket
AtTimeZone HexString ByteString RawString National Escape TableSample CurrentDate Null
""".split()
)
"""The nodes of a tree that are allowed, besides values and operators."""

_CHANGES = (exp.Insert, exp.Update, exp.Delete, exp.Merge)


# The system tables that a statement may read: those that describe the schema.
#
# Others expose the server's configuration, its users, or what other sessions do. This is a list of
# what is allowed, because each release of PostgreSQL adds views.


_PREFIXES = ("sqlite_", "pg_")
_SCHEMAS = frozenset({"pg_catalog", "information_schema", "pg_toast"})

_READABLE = frozenset(
    f"pg_{name}"
    for name in """
am attrdef attribute class collation constraint depend description enum index indexes inherits
matviews namespace opclass operator partitioned_table range sequence sequences stat_user_indexes
stat_user_tables statio_user_tables tables trigger type views
""".split()
)
_OPTIONS = frozenset(
    "column_options foreign_data_wrapper_options foreign_server_options foreign_table_options "
    "user_mapping_options routines".split()
)
"""Views of the information schema with passwords in options, or with the source of functions."""

_SQLITE_READABLE = frozenset({"sqlite_master", "sqlite_schema", "sqlite_sequence", "sqlite_stat1"})


# Refuses functions that make a long text out of a short one.
#
# PostgreSQL sends each row as a whole, up to a gigabyte, so the limit on results comes too late for
# one huge value. SQLite has a limit of its own on the length of a value.


MOST_REPEATED = 10_000
"""The highest length or number of repetitions that may be asked for."""

_WIDTH = re.compile(r"%[^a-zA-Z%]*(\*|\d{5,})")


# Collects the names in a parsed statement whose meaning only the database knows.
#
# Whether `b.title` is a column or a call of a function, whether `lower(title)` is PostgreSQL's or
# the project's own function, and whether a table is the inside of a search index: all of this
# depends on the schema. The connection decides about these names.


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
    of_values = frozenset(values - {""})
    return Names((called - tables) | parsed, frozenset(rows), of_values, tables)


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


def refusal_of_size(node: Expression) -> Refused | None:
    """Returns why a call may make a huge value; None if it does not."""
    match node:
        case exp.Repeat():
            size = node.args.get("times")
        case exp.Pad():
            size = node.args.get("expression")
        case exp.Format():
            size = None if not _WIDTH.search(node.this.name) and _is_text(node.this) else node
        case _:
            return None
    if (size is None or _is_small(size)) and not _is_nested(node):
        return None
    return Refused(
        f"{node.key.upper()} may make a huge value and is refused",
        f"write a number of up to {MOST_REPEATED:_} into the statement, and don't nest such calls",
    )


def _is_small(size: Expression) -> bool:
    number = size.unnest()
    if not isinstance(number, exp.Literal) or number.is_string:
        return False
    return number.name.isdigit() and int(number.name) <= MOST_REPEATED


def _is_text(node: Expression) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _is_nested(node: Expression) -> bool:
    return node.find_ancestor(exp.Repeat, exp.Pad, exp.Format) is not None


def is_system_table(name: str, schema: str) -> bool:
    """Whether a table belongs to the database system, so that no statement may write to it."""
    return name.startswith(_PREFIXES) or schema in _SCHEMAS


def refusal_of_catalog(name: str, schema: str, dialect: Dialect) -> Refused | None:
    """Returns why a system table may not be read; None if it may, or is not one."""
    if dialect == "sqlite":
        hidden = name.startswith("pragma_") or (
            name.startswith("sqlite_") and name not in _SQLITE_READABLE
        )
    elif schema == "information_schema":
        hidden = name in _OPTIONS
    elif schema in ("", "pg_catalog", "pg_toast"):
        hidden = (schema != "" or name.startswith("pg_")) and name not in _READABLE
    else:
        # Tables of the project may be called anything in a schema of their own.
        hidden = schema.startswith("pg_")
    if not hidden:
        return None
    return Refused(
        f"{name} is not a table of the project and is refused",
        "of the system's tables, only those that describe the schema can be read",
    )


class _RefusedError(Exception):
    def __init__(self, what: str, instead: str) -> None:
        self.refused = Refused(what, instead)


class StatementChecker:
    """Checks one parsed statement."""

    def __init__(
        self, dialect: Dialect, own_functions: frozenset[str], called: frozenset[str] = frozenset()
    ) -> None:
        self._dialect = dialect
        self._called = called
        self._functions = ALLOWED[dialect] | own_functions
        self._joined = _joined(dialect)

    def verdict(self, tree: Expression) -> Verdict:
        """Returns whether the statement may run, and as what."""
        try:
            self._check_parts(tree)
            allowed = self._allowed(tree)
            if allowed.table:
                allowed = replace(allowed, target=self._reference(tree), scope=self._scope(tree))
            return replace(allowed, names=collect_names(tree, self._called))
        except _RefusedError as error:
            return error.refused

    def _allowed(self, tree: Expression) -> Allowed:
        match tree:
            case exp.Insert():
                return self._insert(tree)
            case exp.Update():
                return self._update(tree)
            case exp.Delete():
                return self._delete(tree)
            case exp.Query() | exp.Values():
                return Allowed(StatementKind.READ)
        raise _RefusedError(f"{tree.key.upper()} is refused", USE_PLAIN_STATEMENT)

    def _insert(self, tree: exp.Insert) -> Allowed:
        alternative = tree.args.get("alternative")
        if alternative and str(alternative).upper() not in ("IGNORE", "ABORT"):
            raise _RefusedError(f"INSERT OR {alternative} is refused", USE_UPSERT)
        if not tree.expression and not tree.args.get("default"):
            raise _RefusedError("INSERT without rows is refused", USE_PLAIN_STATEMENT)
        table = self._target(tree)
        columns = tree.this.expressions if isinstance(tree.this, exp.Schema) else ()
        _check_columns(table, columns)
        conflict = tree.args.get("conflict")
        replaces = bool(conflict and conflict.expressions)
        return Allowed(StatementKind.INSERT, table, replaces=replaces)

    def _update(self, tree: exp.Update) -> Allowed:
        table = self._target(tree)
        _check_columns(table, [each.this for each in tree.expressions])
        # Whether a condition excludes any row is not guessed: the changed rows are counted.
        return Allowed(StatementKind.UPDATE, table, every_row=tree.args.get("where") is None)

    def _delete(self, tree: exp.Delete) -> Allowed:
        return Allowed(StatementKind.DELETE, self._target(tree))

    def _reference(self, tree: Expression) -> str:
        """Returns the changed table as the statement names it."""
        target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        plain = exp.Table(this=target.this.copy(), db=target.args.get("db"))
        return plain.sql(dialect=self._dialect, comments=False)

    def _scope(self, tree: Expression) -> str:
        """Returns a text that identifies the changed rows, whatever is returned of them."""
        change = tree.copy()
        change.set("returning", None)
        return change.sql(dialect=self._dialect, comments=False, normalize=True)

    def _target(self, tree: exp.Insert | exp.Update | exp.Delete) -> str:
        """Returns the table that is written to, after checking that it may be."""
        target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        table = _table(target)
        name = table.name.lower()
        if not name:
            raise _RefusedError("changing anything but a table is refused", USE_PLAIN_STATEMENT)
        if name.startswith(OWN_TABLES):
            raise _RefusedError(
                f"{name} belongs to signoff and cannot be written", "leave it to signoff"
            )
        if is_system_table(name, table.db.lower()):
            what = f"{name} belongs to the database system and cannot be written"
            raise _RefusedError(what, "put schema changes into a migration")
        return name

    def _check_parts(self, top: Expression) -> None:
        for node in top.walk():
            if node is not top and isinstance(node, _CHANGES):
                what = f"{node.key.upper()} inside another statement is refused"
                raise _RefusedError(what, SEND_ONE_STATEMENT)
            self._check_node(node)

    def _check_node(self, node: Expression) -> None:
        allowed = _PARTS.get(type(node))
        if allowed is not None:
            _check_keys(node, allowed)
        elif isinstance(node, exp.Table):
            self._check_table(node)
        elif isinstance(node, exp.Func):
            self._check_function(node)
        elif not isinstance(node, (exp.Condition, *_STRUCTURE)):
            raise _RefusedError(f"{_describe(node)} is refused", USE_PLAIN_STATEMENT)

    def _check_table(self, node: exp.Table) -> None:
        _refuse(refusal_of_catalog(node.name.lower(), node.db.lower(), self._dialect))
        database = node.catalog or (node.db if self._dialect == "sqlite" else "")
        if database and database.lower() != "main":
            raise _RefusedError(f"a table of another database ({database}) is refused", "use main")

    def _check_function(self, node: exp.Func) -> None:
        schema = _left_of_dot(node).lower()
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_names()[0]
        called = _folded(f"{schema}.{name}" if schema else name)
        if self._dialect == "postgres":
            _refuse(refusal_of_size(node))
        if called in self._functions or (schema in ("", "pg_catalog") and self._computes(node)):
            return
        what = f"the function {called} is not on the list of functions without side effects"
        raise _RefusedError(what, "leave it out, or add it to the guard's functions")

    def _computes(self, node: exp.Func) -> bool:
        if isinstance(node, exp.Anonymous):
            return _folded(node.name) in self._functions
        # The parser has its own names for functions it knows, such as J_S_O_N_OBJECT.
        return any(name.lower().replace("_", "") in self._joined for name in node.sql_names())


@cache
def _joined(dialect: Dialect) -> frozenset[str]:
    return frozenset(name.replace("_", "") for name in ALLOWED[dialect])


def _folded(name: str) -> str:
    """Returns a name in lower case, as databases fold names: only the letters of ASCII.

    Python would turn the Kelvin sign, which is allowed in quotes, into the `k` of a known name.
    """
    return "".join(char.lower() if char.isascii() else char for char in name)


def _left_of_dot(node: Expression) -> str:
    dot = node.parent
    return str(dot.left.name) if isinstance(dot, exp.Dot) and dot.right is node else ""


def _refuse(refused: Refused | None) -> None:
    if refused is not None:
        raise _RefusedError(refused.what, refused.instead)


def _check_columns(table: str, columns: Iterable[Expression]) -> None:
    # A search index takes commands through a column with its own name, such as 'delete-all'.
    if any(column.name.lower() == table for column in columns):
        what = f"{table} has no column of that name; a command to a search index is refused"
        raise _RefusedError(what, USE_PLAIN_STATEMENT)


def _check_keys(node: Expression, allowed: frozenset[str]) -> None:
    for key, value in node.args.items():
        if value and key.rstrip("_") not in allowed:
            name = f"{node.key.upper()} with {key.rstrip('_').upper()}"
            raise _RefusedError(f"{name} is refused", USE_PLAIN_STATEMENT)


def _table(node: object) -> exp.Table:
    if isinstance(node, exp.Table):
        return node
    raise _RefusedError("changing anything but a table is refused", USE_PLAIN_STATEMENT)


def _describe(node: Expression) -> str:
    return f"{type(node).__name__} ({node.sql(comments=False)[:40]})"
