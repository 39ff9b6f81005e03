"""Refuses functions that make a long text out of a short one.

PostgreSQL sends each row as a whole, up to a gigabyte, so the limit on results comes too late for
one huge value. SQLite has a limit of its own on the length of a value.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.expressions import Expr as Expression

from signoff.guarded_db.verdict import Refused

MOST_REPEATED = 10_000
"""The highest length or number of repetitions that may be asked for."""

_WIDTH = re.compile(r"%[^a-zA-Z%]*(\*|\d{5,})")


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
