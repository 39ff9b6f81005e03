"""Parameters and rows of PostgreSQL: `:name` becomes `$1`, and JSON values are sent as JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from signoff.errors import StoreError
from signoff.guarded_db.lexing import named_parameters
from signoff.guarded_db.ports import VALUE_BYTES
from signoff.guarded_db.verdict import Params

if TYPE_CHECKING:
    import psycopg

_JSON_TYPES = frozenset({114, 3802})
"""The server's numbers for json and jsonb."""
_CACHED_CHARACTERS = 20_000
"""A longer statement contains a text of its own, so it will hardly occur again."""


def numbered(sql: str, params: Params) -> tuple[str, list[object]]:
    """Returns a statement with `$1` instead of each `:name`, and the values in that order."""
    if not isinstance(params, Mapping):
        return sql, list(params)
    text, names = _numbered(sql) if len(sql) <= _CACHED_CHARACTERS else _numbered.__wrapped__(sql)
    for name in names:
        if name not in params:
            raise StoreError(f"there is no value for :{name}")
    return text, [params[name] for name in names]


@lru_cache(maxsize=200)
def _numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    order: dict[str, int] = {}
    pieces, last = [], 0
    for match in named_parameters(sql, "postgres"):
        number = order.setdefault(match[1], len(order) + 1)
        pieces += [sql[last : match.start()], f"${number}"]
        last = match.end()
    return "".join([*pieces, sql[last:]]), tuple(order)


@lru_cache(maxsize=200)
def with_numbers(sql: str) -> str:
    """Returns a statement of signoff's own with `$1` and so on for each `?`."""
    first, *others = sql.split("?")
    return first + "".join(f"${number}{text}" for number, text in enumerate(others, start=1))


def adapted(values: list[object], json_positions: Callable[[], Collection[int]]) -> list[object]:
    """Returns values as psycopg takes them: mappings as JSON, and lists where JSON is expected.

    A list is an array for most columns, so the server is asked, but only if there is a list.
    """
    if not any(isinstance(value, dict | list | tuple) for value in values):
        return values
    from psycopg.types.json import Jsonb

    lists = any(isinstance(value, list | tuple) for value in values)
    as_json = json_positions() if lists else ()
    return [
        Jsonb(value) if isinstance(value, dict) or position in as_json else value
        for position, value in enumerate(values)
    ]


def json_positions(db: psycopg.Connection[Any], sql: str) -> frozenset[int]:
    """Returns the positions of the parameters for which the server expects JSON."""
    pgconn = db.pgconn
    pgconn.prepare(b"", sql.encode())
    described = pgconn.describe_prepared(b"")
    return frozenset(
        position
        for position in range(described.nparams)
        if described.param_type(position) in _JSON_TYPES
    )


def size_of(result: Any) -> int:
    """Returns the memory that the values of a result take, about."""
    columns = range(result.nfields)
    values = (result.get_value(row, each) for row in range(result.ntuples) for each in columns)
    return sum(VALUE_BYTES + len(value or b"") for value in values)
