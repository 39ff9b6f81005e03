"""Checks a parsed statement: its kind, its parts, its tables and its functions."""

from __future__ import annotations

from functools import cache

from sqlglot import exp
from sqlglot.expressions import Expr as Expression

from signoff.guarded_db import advice
from signoff.guarded_db.conditions import narrows, reads_all
from signoff.guarded_db.functions import ALLOWED
from signoff.guarded_db.verdict import (
    OWN_TABLES,
    Allowed,
    Dialect,
    Refused,
    StatementKind,
    Verdict,
)

_SYSTEM_TABLES = ("sqlite_", "pg_")
_SYSTEM_SCHEMAS = frozenset({"pg_catalog", "information_schema", "pg_toast"})
_SECRETS = frozenset({"pg_authid", "pg_shadow", "pg_user_mapping", "pg_user_mappings"})
"""Tables with passwords in them."""

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


class _RefusedError(Exception):
    def __init__(self, what: str, instead: str) -> None:
        self.refused = Refused(what, instead)


class StatementChecker:
    """Checks one parsed statement."""

    def __init__(self, dialect: Dialect, own_functions: frozenset[str]) -> None:
        self._dialect = dialect
        self._functions = ALLOWED[dialect] | own_functions
        self._joined = _joined(dialect)

    def verdict(self, tree: Expression) -> Verdict:
        """Returns whether the statement may run, and as what."""
        try:
            self._check_parts(tree)
            return self._allowed(tree)
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
        raise _RefusedError(f"{tree.key.upper()} is refused", advice.USE_PLAIN_STATEMENT)

    def _insert(self, tree: exp.Insert) -> Allowed:
        alternative = tree.args.get("alternative")
        if alternative and str(alternative).upper() not in ("IGNORE", "ABORT"):
            raise _RefusedError(f"INSERT OR {alternative} is refused", advice.USE_UPSERT)
        if not tree.expression and not tree.args.get("default"):
            raise _RefusedError("INSERT without rows is refused", advice.USE_PLAIN_STATEMENT)
        table = self._target(tree)
        conflict = tree.args.get("conflict")
        feeds_itself = any(reads_all(query, table) for query in tree.find_all(exp.Select))
        if feeds_itself and conflict and conflict.expressions:
            what = "INSERT of a table's own rows with DO UPDATE changes all of them and is refused"
            raise _RefusedError(what, advice.USE_WHERE)
        return Allowed(StatementKind.INSERT, table)

    def _update(self, tree: exp.Update) -> Allowed:
        table = self._target(tree)
        self._check_where(tree, "UPDATE")
        return Allowed(StatementKind.UPDATE, table)

    def _delete(self, tree: exp.Delete) -> Allowed:
        table = self._target(tree)
        self._check_where(tree, "DELETE")
        return Allowed(StatementKind.DELETE, table, self._scope(tree))

    def _scope(self, tree: exp.Delete) -> str:
        """Returns a text that identifies the deleted rows, whatever is returned of them."""
        deletion = tree.copy()
        deletion.set("returning", None)
        return deletion.sql(dialect=self._dialect, comments=False, normalize=True)

    def _check_where(self, tree: exp.Update | exp.Delete, name: str) -> None:
        where = tree.args.get("where")
        if where is None:
            raise _RefusedError(f"{name} without WHERE is refused", advice.USE_WHERE)
        if not narrows(where, _table(tree.this)):
            what = f"{name} with a WHERE that is true for every row is refused"
            raise _RefusedError(what, advice.USE_WHERE)

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
        if name.startswith(_SYSTEM_TABLES) or table.db.lower() in _SYSTEM_SCHEMAS:
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
        elif not isinstance(node, (exp.Condition, *_STRUCTURE)):
            raise _RefusedError(f"{_describe(node)} is refused", advice.USE_PLAIN_STATEMENT)

    def _check_table(self, node: exp.Table) -> None:
        name = node.name.lower()
        if name in _SECRETS or name.startswith("pragma_"):
            raise _RefusedError(
                f"{name} is not a table of the project and is refused", "leave it out"
            )
        database = node.catalog or (node.db if self._dialect == "sqlite" else "")
        if database and database.lower() != "main":
            raise _RefusedError(f"a table of another database ({database}) is refused", "use main")

    def _check_function(self, node: exp.Func) -> None:
        schema = _left_of_dot(node).lower()
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_names()[0]
        called = f"{schema}.{name}".lower() if schema else name.lower()
        if called in self._functions or (schema in ("", "pg_catalog") and self._computes(node)):
            return
        what = f"the function {called} is not on the list of functions without side effects"
        raise _RefusedError(what, "leave it out, or add it to the guard's functions")

    def _computes(self, node: exp.Func) -> bool:
        if isinstance(node, exp.Anonymous):
            return node.name.lower() in self._functions
        # The parser has its own names for functions it knows, such as J_S_O_N_OBJECT.
        return any(name.lower().replace("_", "") in self._joined for name in node.sql_names())


@cache
def _joined(dialect: Dialect) -> frozenset[str]:
    return frozenset(name.replace("_", "") for name in ALLOWED[dialect])


def _left_of_dot(node: Expression) -> str:
    dot = node.parent
    return str(dot.left.name) if isinstance(dot, exp.Dot) and dot.right is node else ""


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
