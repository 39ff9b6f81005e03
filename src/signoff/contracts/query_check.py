"""Conditions that query the database: a SELECT, and an expression over its result.

Files can check the database this way without a function. The query only reads, and its values come
from expressions, so no value becomes part of the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from signoff.contracts.blame import BadExpression
from signoff.contracts.context import StepContext
from signoff.contracts.database import query_problem
from signoff.contracts.expressions import parse_expression
from signoff.contracts.model import Condition, Database

RESULT_NAMES = frozenset({"rows", "value"})
"""What the expression can use in addition: all rows, and the first column of the first row."""


@dataclass(frozen=True)
class QueryCheck:
    """The function of such a condition."""

    query: str
    check: str
    values: Mapping[str, str] = field(default_factory=dict)
    """An expression for each `:name` in the query."""

    @property
    def definition(self) -> list[Any]:
        """What the digest of the workflow covers."""
        return ["query", self.query, self.check, dict(self.values)]

    def __call__(self, ctx: StepContext) -> bool:
        """Returns whether the expression is true for what the query returns."""
        rows = [_plain(row) for row in ctx.db.query(self.query, self._parameters(ctx))]
        value = next(iter(rows[0].values()), None) if rows else None
        expression = parse_expression(self.check, RESULT_NAMES)
        values = {**ctx.values(expression), "rows": rows, "value": value}
        return expression.holds(values, ctx.checkpoint.own_results)

    def _parameters(self, ctx: StepContext) -> dict[str, Any]:
        parsed = {name: parse_expression(text) for name, text in self.values.items()}
        own = ctx.checkpoint.own_results
        return {name: each.evaluate(ctx.values(each), own) for name, each in parsed.items()}


def as_query_check(condition: Condition) -> QueryCheck:
    """Returns the function of a condition with a query."""
    return QueryCheck(condition.query, str(condition.check), dict(condition.values))


def query_problems(condition: Condition, database: Database | None) -> Iterator[str]:
    """Yields what is wrong about a condition with a query; its values are checked elsewhere."""
    if not condition.query:
        if condition.values:
            yield "values without a query; they are for its :names"
        return
    if database is None:
        yield "a query needs a database; name it at the top: `database: FILE`"
        return
    if problem := query_problem(condition.query, database):
        yield problem
    try:
        parse_expression(str(condition.check), RESULT_NAMES)
    except BadExpression as error:
        yield str(error)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Any:
    """Returns a value of the database as expressions know it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case Mapping():
            return {str(key): _plain_value(each) for key, each in value.items()}
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [_plain_value(each) for each in value]
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
    return str(value)
