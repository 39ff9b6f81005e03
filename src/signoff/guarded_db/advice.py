"""Suggests what to use instead of a statement that is refused."""

from __future__ import annotations

from signoff.guarded_db.verdict import Refused

ALLOWED_FIRST_WORDS = frozenset({"select", "with", "values", "table", "insert", "update", "delete"})
"""Statements with another first word are refused without parsing them."""

USE_PLAIN_STATEMENT = "use a plain SELECT, INSERT, UPDATE or DELETE"
USE_UPSERT = "use INSERT ... ON CONFLICT (...) DO UPDATE, which keeps the row"
LEAVE_SEQUENCES = "let the column's default take the next number, and read it with RETURNING"
SEND_ONE_STATEMENT = "send each statement on its own, so that each is checked on its own"

_FIRST_WORDS_BY_ADVICE = {
    "put schema changes into a numbered migration and apply it": "drop alter create rename comment",
    "use DELETE, which has to be confirmed: a human is asked in a run, and a token is needed "
    "elsewhere": "truncate",
    "a step's statements share one transaction that signoff opens and closes": (
        "begin start commit end rollback abort savepoint release lock"
    ),
    "signoff manages the settings of the connection; leave it out": "pragma set reset discard",
    USE_UPSERT: "replace merge upsert",
    "a step uses one database; copy what it needs into a table in a migration": "attach",
    "a step uses one database": "detach",
    "maintenance, such as a backup, is done outside of workflows": "vacuum",
    "read with query() and write with INSERT; SQL cannot access files": "copy",
    "look at plans outside of workflows; EXPLAIN ANALYZE runs what it explains": "explain",
}
_ADVICE = {word: text for text, words in _FIRST_WORDS_BY_ADVICE.items() for word in words.split()}


def refusal_of(word: str) -> Refused:
    """Returns why a statement with this first word is refused, and what to use instead."""
    if not word:
        return Refused("the text contains no statement", USE_PLAIN_STATEMENT)
    return Refused(f"{word.upper()[:40]} is refused", _ADVICE.get(word, USE_PLAIN_STATEMENT))
