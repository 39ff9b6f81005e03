"""Decides whether a WHERE can exclude any row.

No list of conditions that are always true is complete. So a condition must use a column of the
changed table in each of its alternatives, and must not compare an expression with itself.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.expressions import Expr as Expression


def narrows(where: Expression, target: exp.Table) -> bool:
    """Whether a condition can exclude any row of the target."""
    return not _always(where.this, _names(target))


def reads_all(query: exp.Select, table: str) -> bool:
    """Whether a query reads every row of a table, which is named in lower case."""
    source = query.args.get("from_")
    read = source.this if isinstance(source, exp.From) else None
    if not isinstance(read, exp.Table) or read.name.lower() != table:
        return False
    if any(query.args.get(part) for part in ("joins", "limit", "group")):
        return False
    where = query.args.get("where")
    return where is None or not narrows(where, read)


def _names(target: exp.Table) -> frozenset[str]:
    return frozenset({"", target.name.lower(), target.alias_or_name.lower()})


def _always(node: Expression, names: frozenset[str]) -> bool:
    """Whether a condition is true for all rows, or does not depend on the row."""
    match node:
        case exp.Paren():
            return _always(node.this, names)
        case exp.Or():
            return _either(node, names)
        case exp.And():
            return _always(node.left, names) and _always(node.right, names)
    return not _uses_row(node, names) or _tautology(node, names)


def _either(node: exp.Or, names: frozenset[str]) -> bool:
    parts = list(node.flatten())
    if any(_always(part, names) for part in parts):
        return True
    # `a = 1 OR a <> 1` is always true, so an alternative and its negation are looked for.
    alternatives = {_positive(part) for part in parts}
    return any((text, not negated) in alternatives for text, negated in alternatives)


def _positive(node: Expression) -> tuple[str, bool]:
    """Returns a condition without its negation, and whether there was one."""
    node = node.unnest()
    if node.args.get("negate"):
        plain = node.copy()
        plain.set("negate", None)
        return _text(plain), True
    match node:
        case exp.Not():
            text, negated = _positive(node.this)
            return text, not negated
        case exp.NEQ():
            return _equality(node), True
        case exp.EQ():
            return _equality(node), False
        case exp.GTE():
            return f"{_text(node.left)} < {_text(node.right)}", True
        case exp.LTE():
            return f"{_text(node.left)} > {_text(node.right)}", True
    return _text(node), False


def _equality(node: exp.Binary) -> str:
    return " = ".join(sorted((_text(node.left), _text(node.right))))


def _uses_row(node: Expression, names: frozenset[str]) -> bool:
    """Whether a condition uses a column of the target; a subquery's own columns do not count."""
    return any(_of_row(column, node, names) for column in node.find_all(exp.Column))


def _of_row(column: exp.Column, top: Expression, names: frozenset[str]) -> bool:
    if column.table.lower() not in names:
        return False
    inner = column.find_ancestor(exp.Query)
    return bool(column.table) or inner is None or inner is top.find_ancestor(exp.Query)


def _tautology(node: Expression, names: frozenset[str]) -> bool:
    match node:
        case exp.Not():
            return _contradiction(node.this.unnest(), names)
        case exp.Is() if node.args.get("negate"):
            return _contradiction(node, names)
        case exp.EQ() if isinstance(node.right, exp.Any):
            return _gives_all(node.right.this, node.left, names)
        case exp.EQ() | exp.GTE() | exp.LTE() | exp.NullSafeEQ() | exp.Is():
            return _text(node.left) == _text(node.right) or _never_less(node)
        case exp.Like() | exp.ILike() | exp.Glob() | exp.SimilarTo():
            pattern = node.expression.name if isinstance(node.expression, exp.Literal) else "-"
            return _text(node.this) == _text(node.expression) or not pattern.strip("%*")
        case exp.Between():
            return _text(node.this) == _text(node.args["low"]) == _text(node.args["high"])
        case exp.In():
            return _all_of_itself(node, names)
    return False


def _contradiction(node: Expression, names: frozenset[str]) -> bool:
    match node:
        case exp.NEQ() | exp.GT() | exp.LT() | exp.NullSafeNEQ():
            return _text(node.left) == _text(node.right)
        case exp.Not():
            return _tautology(node.this.unnest(), names)
        case exp.Is():
            # `NOT rowid IS NULL` is true for every row.
            return node.left.name.lower() in ("rowid", "_rowid_", "oid", "ctid")
    return False


def _never_less(node: Expression) -> bool:
    """Whether a condition only says that a length or an absolute value is not negative."""
    if not isinstance(node, exp.GTE) or _text(node.right) not in ("0", "-1"):
        return False
    return isinstance(node.left.unnest(), exp.Length | exp.Abs)


def _all_of_itself(node: exp.In, names: frozenset[str]) -> bool:
    """Whether a condition only says that a column is one of the values of that column."""
    if any(_text(member) == _text(node.this) for member in node.expressions):
        return True
    return _gives_all(node.args.get("query"), node.this, names)


def _gives_all(query: object, column: Expression, names: frozenset[str]) -> bool:
    """Tells whether a subquery gives every value that a column of the target has."""
    inner = query.unnest() if isinstance(query, Expression) else None
    if not isinstance(inner, exp.Select) or not any(reads_all(inner, name) for name in names):
        return False
    columns = {selected.name.lower() for selected in inner.selects}
    return not columns or column.name.lower() in columns


def _text(node: Expression) -> str:
    return node.unnest().sql(comments=False, normalize=True).lower()
