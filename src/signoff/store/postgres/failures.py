"""Turns the driver's errors into errors of signoff, and tells which of them pass by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.errors import StoreBusy, StoreDamaged, StoreError, WriteFailed
from signoff.postgres_driver import driver
from signoff.remedies import SetPassword

if TYPE_CHECKING:
    import psycopg

_OUT_OF_SPACE = frozenset({"53100", "53200"})
"""Disk full, out of memory."""
RETRIED = frozenset({"40001", "40P01", "55P03"}) | _OUT_OF_SPACE
"""Could not serialize, deadlock, lock not available, no space: nothing was done, so it can be done
again."""

_UNREACHABLE = ("08", "57P")
_OUT_OF_CONNECTIONS = "53300"
_NO_CONNECTION_LEFT = ("too many clients", "too many connections", "connection slots are reserved")
_NONE_SUPPLIED = "no password supplied"
"""libpq found no password, neither in its address nor in the environment or a file."""
_NOT_LET_IN = (
    _NONE_SUPPLIED,
    "authentication failed",
    "does not exist",
    "not permitted to log in",
    "no pg_hba.conf",
)
"""An error while connecting has a text and no code."""
_READ_ONLY = "25006"
"""The server is a standby: after a failover, another one accepts writes."""
_LOGIN = "28"
_NO_DATABASE = "3D000"
DENIED = "42501"


def is_lost(error: psycopg.Error) -> bool:
    """Whether the server was lost or cannot take us; whether it did the last thing is unknown."""
    code = error.sqlstate or ""
    if code.startswith(_UNREACHABLE) or code in (_OUT_OF_CONNECTIONS, _READ_ONLY):
        return True
    psycopg = driver()
    return not code and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def is_refused_login(error: psycopg.Error) -> bool:
    """Whether the server answered that it will not let us in, which waiting does not change."""
    text = str(error)
    if (error.sqlstate or "").startswith((_LOGIN, _NO_DATABASE)):
        return True
    return not error.sqlstate and any(each in text for each in _NOT_LET_IN)


def is_out_of_connections(error: psycopg.Error) -> bool:
    """Whether the server, or the role's or the database's limit, has no connection left."""
    if error.sqlstate:
        return error.sqlstate == _OUT_OF_CONNECTIONS
    return any(each in str(error) for each in _NO_CONNECTION_LEFT)


def store_error(label: str, error: psycopg.Error | UnicodeEncodeError) -> StoreError:
    """Returns the error to raise, which names the database and the fix."""
    if isinstance(error, UnicodeEncodeError):
        return StoreError(f"a name contains half a character and cannot be stored: {error}")
    if _NONE_SUPPLIED in str(error):
        problem = f"{label} needs a password, and none was given"
        return StoreError(problem, remedy=SetPassword())
    reason = _reason(error)
    if is_refused_login(error):
        return StoreError(
            f"{label} refuses the connection ({reason}); check the user, the password and the name "
            "of the database in its address"
        )
    kind, problem, fix = _kind(error)
    return kind(f"{label} {problem} ({reason}); {fix}") if fix else kind(f"{label}: {reason}")


def _kind(error: psycopg.Error) -> tuple[type[StoreError], str, str]:
    """Returns the class of an error, what it means for the database, and the fix."""
    code = error.sqlstate or ""
    if code in _OUT_OF_SPACE:
        return WriteFailed, "is out of space", "free some, then resume"
    if code in RETRIED:
        return StoreBusy, "is locked by another session", "try again"
    if is_out_of_connections(error):
        return StoreBusy, "has no free connection", "use a pooler, or raise max_connections"
    if code == _READ_ONLY:
        return WriteFailed, "is read-only", "connect to the primary server"
    if is_lost(error):
        return WriteFailed, "cannot be reached", "check that the server runs"
    if code.startswith("53"):
        return WriteFailed, "has reached a limit", "raise it, then resume"
    if code.startswith("XX"):
        return StoreDamaged, "is damaged", "restore a backup"
    return StoreError, "", ""


def _reason(error: psycopg.Error) -> str:
    """Returns the first line of the driver's message, which contains no password."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].removeprefix("connection failed: ")
