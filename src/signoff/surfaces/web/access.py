"""Who may use the web server of a project: login links, sessions and bearer tokens.

All of them are long random texts. Only their digests are stored, in a small database next to
the runs that no one but the user can read, so sessions and tokens outlive the server and several
processes can change them at once. A session belongs to the human who opened a login link; a token
belongs to a program, and one that was made for an agent can never decide.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from signoff.app.settings.home import Home
from signoff.core.errors import NameTaken, UnknownName, UsageError
from signoff.documents.regular_files import create_private, make_private_folders
from signoff.store.databases import translate_errors

LINK_SECONDS = 3600.0
"""How long a login link can be used; it can be used once."""
SESSION_SECONDS = 30 * 86400.0
REGISTRATION_SECONDS = 900.0
"""How long the link that registers a passkey can be used; it can be used once."""
TOKEN_PREFIX = "signoff-"  # noqa: S105  # tells people and scanners what they have found

_SCHEMA = """
CREATE TABLE IF NOT EXISTS secrets (
    digest     TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    scope      INTEGER NOT NULL,
    agent      INTEGER NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL
) WITHOUT ROWID
"""
_SCHEMA_SERVER = "CREATE TABLE IF NOT EXISTS server (id INTEGER PRIMARY KEY, address TEXT)"
_KEEP_ADDRESS = "INSERT OR REPLACE INTO server VALUES (1, ?)"
_ADDRESS = "SELECT address FROM server"
_FIND = """
SELECT name, scope, agent FROM secrets
WHERE digest = ? AND kind = ? AND coalesce(expires_at > ?, TRUE)
"""
_TAKE = """
DELETE FROM secrets WHERE digest = ? AND kind = ? AND expires_at > ? RETURNING name
"""
_ADD = "INSERT INTO secrets VALUES (?, ?, ?, ?, ?, ?, ?)"
_DROP = "DELETE FROM secrets WHERE digest = ?"
_EXPIRE = "DELETE FROM secrets WHERE expires_at <= ?"
_TOKENS = "SELECT name, scope, agent, created_at FROM secrets WHERE kind = ? ORDER BY created_at"
_REVOKE = "DELETE FROM secrets WHERE kind = ? AND name = ?"


class AccessScope(IntEnum):
    """What a caller may do; each includes the ones before it."""

    # The numbers are stored and compared, so their order is their meaning.
    READ = 1
    OPERATE = 2
    """Start, cancel and resume runs."""
    DECIDE = 3
    """Answer requests."""

    @property
    def word(self) -> str:
        """Its name as users write it."""
        return self.name.lower()


class SecretKind(StrEnum):
    """What a stored digest belongs to."""

    LINK = "link"
    SESSION = "session"
    TOKEN = "token"  # noqa: S105  # a kind, not a secret
    REGISTRATION = "registration"
    """Of a passkey."""


class Caller(NamedTuple):
    """Who sent a request."""

    name: str
    """The author of the answers it gives."""
    scope: AccessScope
    agent: bool = False
    """Whether it is an agent, which never decides."""


class TokenInfo(NamedTuple):
    """A token as a list shows it."""

    name: str
    scope: AccessScope
    agent: bool
    created_at: float


class PrivateDatabase:
    """A small database next to the runs that no one but the user can read."""

    FILE: ClassVar[str]

    def __init__(self, path: Path, *schema: str) -> None:
        """Opens it, and creates it with these tables if it does not exist."""
        make_private_folders(path.parent)
        with suppress(FileExistsError):
            os.close(create_private(path))
        self._path = path
        self._lock = threading.Lock()
        with translate_errors(path):
            # Requests are answered in several threads, which take turns.
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # With a write-ahead log, reading never waits for a process that writes.
        for statement in ("PRAGMA journal_mode = WAL", *schema):
            self.run(statement)

    @classmethod
    def of(cls, home: Home) -> Self:
        """Opens that of a project, in a folder for the user alone."""
        return cls(home.private_folder("web") / cls.FILE)

    def run(self, statement: str, *values: object) -> list[Any]:
        """Runs a statement, which is a transaction of its own, and returns its rows."""
        with self._lock, translate_errors(self._path):
            return self._db.execute(statement, values).fetchall()

    def close(self) -> None:
        """Closes the database."""
        with self._lock:
            self._db.close()


class Access(PrivateDatabase):
    """The secrets of one project's web server."""

    FILE = "access.db"

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        super().__init__(path, _SCHEMA, _SCHEMA_SERVER)
        self._now = now
        # Only to keep the file small: whoever looks up a secret checks its time anyway.
        self.run(_EXPIRE, now())

    def new_link(self, name: str) -> str:
        """Returns the secret of a login link that opens a session of this name, once."""
        return self._add(SecretKind.LINK, Caller(name, AccessScope.DECIDE), LINK_SECONDS)

    def open_session(self, link: str) -> str | None:
        """Returns the secret of a new session, or None if the link was used, expired or wrong."""
        name = self._take(SecretKind.LINK, link)
        if name is None:
            return None
        return self._add(SecretKind.SESSION, Caller(name, AccessScope.DECIDE), SESSION_SECONDS)

    def close_session(self, secret: str) -> None:
        """Ends a session."""
        self.run(_DROP, _digest(secret))

    def new_registration(self, name: str) -> str:
        """Returns the secret of a link that registers a passkey of this name, once."""
        caller = Caller(name, AccessScope.DECIDE)
        return self._add(SecretKind.REGISTRATION, caller, REGISTRATION_SECONDS)

    def registration(self, secret: str) -> str | None:
        """Returns the name of the passkey that a link registers; None if it is used or expired."""
        found = self._find(SecretKind.REGISTRATION, secret)
        return found.name if found is not None else None

    def use_registration(self, secret: str) -> bool:
        """Uses up a link that registers a passkey; False if that was done before."""
        return self._take(SecretKind.REGISTRATION, secret) is not None

    def new_token(self, name: str, scope: AccessScope, *, agent: bool = False) -> str:
        """Returns a new token; it is shown once and cannot be read back."""
        if agent and scope >= AccessScope.DECIDE:
            raise UsageError(
                f"a token for an agent cannot have the scope {scope.word!r}: only humans decide"
            )
        if any(each.name == name for each in self.tokens()):
            raise NameTaken(f"a token named {name!r} exists; revoke it or choose another name")
        return TOKEN_PREFIX + self._add(SecretKind.TOKEN, Caller(name, scope, agent), None)

    def tokens(self) -> list[TokenInfo]:
        """Returns the tokens that are valid, oldest first."""
        rows = self.run(_TOKENS, SecretKind.TOKEN)
        return [TokenInfo(name, AccessScope(scope), bool(by), at) for name, scope, by, at in rows]

    def revoke(self, name: str) -> None:
        """Makes a token invalid; raises `UnknownName`."""
        known = [each.name for each in self.tokens()]
        if name not in known:
            raise UnknownName("token", name, known)
        self.run(_REVOKE, SecretKind.TOKEN, name)

    def keep_address(self, address: str) -> None:
        """Notes where the server was last started, for further login links."""
        self.run(_KEEP_ADDRESS, address)

    def address(self) -> str:
        """Returns where the server was last started; empty if it never was."""
        return "".join(address for (address,) in self.run(_ADDRESS))

    def session(self, secret: str) -> Caller | None:
        """Returns whose session it is; None for an unknown or expired one."""
        return self._find(SecretKind.SESSION, secret)

    def token(self, secret: str) -> Caller | None:
        """Returns whose token it is; None for an unknown or revoked one."""
        return self._find(SecretKind.TOKEN, secret.removeprefix(TOKEN_PREFIX))

    def _add(self, kind: SecretKind, caller: Caller, seconds: float | None) -> str:
        secret, now = secrets.token_urlsafe(32), self._now()
        until = None if seconds is None else now + seconds
        self.run(_ADD, _digest(secret), kind, *caller, now, until)
        return secret

    def _find(self, kind: SecretKind, secret: str) -> Caller | None:
        rows = self.run(_FIND, _digest(secret), kind, self._now())
        return next((Caller(name, AccessScope(scope), bool(by)) for name, scope, by in rows), None)

    def _take(self, kind: SecretKind, secret: str) -> str | None:
        # One statement: of two requests with the same link, only one gets its name.
        return next((name for (name,) in self.run(_TAKE, _digest(secret), kind, self._now())), None)


def cookie_name(home: Home) -> str:
    """Returns the name of a project's cookie: browsers send a host's cookies to all its ports."""
    place = hashlib.sha256(str(home.path.resolve()).encode(errors="surrogateescape"))
    return f"signoff-{place.hexdigest()[:12]}"


def _digest(secret: str) -> str:
    # The secrets are random and long, so a plain hash cannot be reversed by guessing.
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
