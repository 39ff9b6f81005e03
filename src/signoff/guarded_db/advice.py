"""Says what to use instead of a statement that is refused by its first word."""

from __future__ import annotations

from signoff.guarded_db.verdict import Refused

ENTRANCES = frozenset({"select", "with", "values", "table", "insert", "update", "delete"})
"""The first words of statements that are looked at further."""

_MIGRATE = "put schema changes into a numbered migration and apply it"
_DELETE = "use DELETE with a WHERE and a token from get_delete_confirmation()"
_TRANSACTION = "a step's statements share one transaction that signoff opens and closes"
_SETTINGS = "settings of the connection belong to signoff; leave it out"
_UPSERT = "use INSERT ... ON CONFLICT (...) DO UPDATE, which keeps the row"
_PLAIN = "use a plain SELECT, INSERT, UPDATE or DELETE"

_INSTEAD = {
    "drop": _MIGRATE,
    "alter": _MIGRATE,
    "create": _MIGRATE,
    "rename": _MIGRATE,
    "comment": _MIGRATE,
    "truncate": _DELETE,
    "replace": _UPSERT,
    "merge": _UPSERT,
    "upsert": _UPSERT,
    "begin": _TRANSACTION,
    "start": _TRANSACTION,
    "commit": _TRANSACTION,
    "end": _TRANSACTION,
    "rollback": _TRANSACTION,
    "abort": _TRANSACTION,
    "savepoint": _TRANSACTION,
    "release": _TRANSACTION,
    "lock": _TRANSACTION,
    "pragma": _SETTINGS,
    "set": _SETTINGS,
    "reset": _SETTINGS,
    "discard": _SETTINGS,
    "attach": "a step works on one database; copy what it needs into a table by a migration",
    "detach": "a step works on one database",
    "vacuum": "upkeep, such as a backup, is done outside of workflows",
    "copy": "read with query() and write with INSERT; files are not touched through SQL",
    "explain": "look at plans outside of workflows; EXPLAIN ANALYZE runs what it explains",
}


def refusal_of(word: str) -> Refused:
    """Returns why a statement with this first word is refused, and the way out."""
    if not word:
        return Refused("there is no statement in it", _PLAIN)
    return Refused(f"{word.upper()[:40]} is refused", _INSTEAD.get(word, _PLAIN))


OPEN_WHERE = (
    "name the rows: a WHERE that looks at a column of the table and can leave rows out; "
    "changes to every row belong into a migration"
)
KEEP_ROW = _UPSERT
ONE_AT_A_TIME = "send each statement on its own, so that each is judged on its own"
PLAIN = _PLAIN
