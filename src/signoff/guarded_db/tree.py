"""Checks a parsed statement: its kind, its parts, its tables and its functions.

A statement that deletes, or whose text shows that it would change every row, is not refused here:
its verdict says so, and it needs a confirmation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from sqlglot import exp
from sqlglot.expressions import Expr as Expression

from signoff.guarded_db import advice
from signoff.guarded_db.catalogs import is_system_table, refusal_of_catalog
from signoff.guarded_db.conditions import narrows, reads_all
from signoff.guarded_db.functions import ALLOWED
from signoff.guarded_db.names import collect_names, sequence_of
from signoff.guarded_db.sizes import refusal_of_size
from signoff.guarded_db.verdict import (
    OWN_TABLES,
    Allowed,
    Dialect,
    Refused,
    StatementKind,
    Verdict,
)

_PARTS: dict[type[Expression], frozenset[str]] = {
    exp.Select: frozenset(
        "with expressions distinct from laterals joins where group having windows order limit "
        "offset kind locks".split()
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
AtTimeZone HexString ByteString RawString National Escape TableSample CurrentDate Null Lock
""".split()
)
"""The nodes of a tree that are allowed, besides values and operators."""

_CHANGES = (exp.Insert, exp.Update, exp.Delete, exp.Merge)


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
                locks = any(select.args.get("locks") for select in tree.find_all(exp.Select))
                return Allowed(StatementKind.LOCK if locks else StatementKind.READ)
        raise _RefusedError(f"{tree.key.upper()} is refused", advice.USE_PLAIN_STATEMENT)

    def _insert(self, tree: exp.Insert) -> Allowed:
        alternative = tree.args.get("alternative")
        if alternative and str(alternative).upper() not in ("IGNORE", "ABORT"):
            raise _RefusedError(f"INSERT OR {alternative} is refused", advice.USE_UPSERT)
        if not tree.expression and not tree.args.get("default"):
            raise _RefusedError("INSERT without rows is refused", advice.USE_PLAIN_STATEMENT)
        table = self._target(tree)
        columns = tree.this.expressions if isinstance(tree.this, exp.Schema) else ()
        _check_columns(table, columns)
        conflict = tree.args.get("conflict")
        replaces = bool(conflict and conflict.expressions)
        feeds_itself = any(reads_all(query, table) for query in tree.find_all(exp.Select))
        return Allowed(
            StatementKind.INSERT,
            table,
            every_row=replaces and feeds_itself,
            replaces=replaces,
        )

    def _update(self, tree: exp.Update) -> Allowed:
        table = self._target(tree)
        _check_columns(table, [each.this for each in tree.expressions])
        return Allowed(StatementKind.UPDATE, table, every_row=_is_unconditional(tree))

    def _delete(self, tree: exp.Delete) -> Allowed:
        table = self._target(tree)
        return Allowed(StatementKind.DELETE, table, every_row=_is_unconditional(tree))

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
            raise _RefusedError(
                "changing anything but a table is refused", advice.USE_PLAIN_STATEMENT
            )
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
                raise _RefusedError(what, advice.SEND_ONE_STATEMENT)
            self._check_node(node)

    def _check_node(self, node: Expression) -> None:
        allowed = _PARTS.get(type(node))
        if allowed is not None:
            _check_keys(node, allowed)
        elif isinstance(node, exp.Table):
            self._check_table(node)
        elif isinstance(node, exp.Func):
            self._check_function(node)
        elif isinstance(node, exp.Lock) and self._dialect == "sqlite":
            raise _RefusedError("FOR UPDATE is refused", "leave it out; SQLite locks by itself")
        elif not isinstance(node, (exp.Condition, *_STRUCTURE)):
            raise _RefusedError(f"{_describe(node)} is refused", advice.USE_PLAIN_STATEMENT)

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
        if name.lower() == "nextval" and not isinstance(node.root(), exp.Insert):
            raise _RefusedError("nextval outside of an INSERT is refused", advice.LEAVE_SEQUENCES)
        if sequence_of(node) == "":
            raise _RefusedError("nextval of a computed name is refused", advice.LEAVE_SEQUENCES)
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


def _is_unconditional(tree: exp.Update | exp.Delete) -> bool:
    """Whether a change has no condition, or one that is true for every row."""
    where = tree.args.get("where")
    return where is None or not narrows(where, _table(tree.this))


def _check_columns(table: str, columns: Iterable[Expression]) -> None:
    # A search index takes commands through a column with its own name, such as 'delete-all'.
    if any(column.name.lower() == table for column in columns):
        what = f"{table} has no column of that name; a command to a search index is refused"
        raise _RefusedError(what, advice.USE_PLAIN_STATEMENT)


def _check_keys(node: Expression, allowed: frozenset[str]) -> None:
    for key, value in node.args.items():
        if value and key.rstrip("_") not in allowed:
            name = f"{node.key.upper()} with {key.rstrip('_').upper()}"
            raise _RefusedError(f"{name} is refused", advice.USE_PLAIN_STATEMENT)


def _table(node: object) -> exp.Table:
    if isinstance(node, exp.Table):
        return node
    raise _RefusedError("changing anything but a table is refused", advice.USE_PLAIN_STATEMENT)


def _describe(node: Expression) -> str:
    return f"{type(node).__name__} ({node.sql(comments=False)[:40]})"
