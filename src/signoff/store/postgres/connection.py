"""One connection to a server, which is opened again when it was lost.

Nothing relies on a session: no settings, no open transactions, no prepared statements where a
pooler gives each transaction another session. So what a call does is one statement, or a few
that are sent together and are one transaction, and after a loss it can be done again.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from signoff.errors import StoreError
from signoff.postgres_driver import driver
from signoff.store.postgres.address import ServerAddress
from signoff.store.postgres.failures import (
    DENIED,
    RETRIED,
    is_lost,
    is_refused_login,
    store_error,
)
from signoff.store.postgres.grants import denied_error

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
Row = tuple[Any, ...]

PATIENCE_SECONDS = 10.0
"""How long a call waits for a server that was lost, or for another session."""

_FIRST_DELAY_SECONDS, _LAST_DELAY_SECONDS = 0.02, 1.0
_PREPARED_FROM = 2
"""How often a statement is sent before the server keeps its plan."""

DEFAULTS = {
    # A server that vanished without a word must be noticed: TCP alone would wait for hours.
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "signoff",
}
"""Options of a connection that its address does not set."""


class ServerSession:
    """An open connection, for one call."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db
        # Numbers and times as text would be parsed again here, which takes half of a long list.
        self._cursor = db.cursor(binary=True)
        self._opened_at = time.monotonic()

    @property
    def age_seconds(self) -> float:
        """For how long the server could be reached without an interruption."""
        return time.monotonic() - self._opened_at

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Runs a statement and returns its rows."""
        return self._cursor.execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Runs a statement and returns how many rows it changed."""
        return self._cursor.execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Runs a statement once for each row of values, in one round trip."""
        if rows:
            self._cursor.executemany(sql, rows)

    def together(self, *statements: tuple[str, Sequence[object]]) -> list[list[Row]]:
        """Runs statements in one transaction and one round trip; returns the rows of each."""
        with self._db.pipeline():
            cursors = [self._db.execute(sql, values, binary=True) for sql, values in statements]
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Runs the statements inside in one transaction, with a round trip each."""
        with self._db.transaction():
            yield


class ServerConnection:
    """A connection that threads take turns on."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._lock = threading.RLock()
        self._db: psycopg.Connection[Any] | None = None
        self._session: ServerSession | None = None
        self._closed = False
        self.is_pooled = False
        """Whether a pooler shares the server's sessions with others."""

    def open(self) -> None:
        """Connects; a server that cannot be reached is an error at once."""
        with self._lock, self._translated():
            self._connect()

    def perform(self, work: Callable[[ServerSession], T], patience: float = PATIENCE_SECONDS) -> T:
        """Calls `work` with an open connection, again if the server was lost meanwhile."""
        psycopg = driver()
        until = time.monotonic() + patience
        delay = _FIRST_DELAY_SECONDS
        while True:
            with self._translated(), self._lock:
                try:
                    return work(self._current())
                except psycopg.Error as error:
                    if not self._passes(error) or time.monotonic() + delay > until:
                        raise
            time.sleep(delay)
            delay = min(2 * delay, _LAST_DELAY_SECONDS)

    def close(self) -> None:
        """Closes the connection for good."""
        with self._lock:
            self._closed = True
            self._drop()

    def _current(self) -> ServerSession:
        if self._closed:
            raise StoreError(f"{self.address.label} was closed by this program")
        if self._session is None:
            self._connect()
        return self._session  # type: ignore[return-value]  # _connect has set it

    def _passes(self, error: psycopg.Error) -> bool:
        """Whether trying again may help; a lost connection is dropped."""
        if (error.sqlstate or "") in RETRIED:
            return True
        if is_refused_login(error) or not is_lost(error):
            return False
        self._drop()
        return True

    def _drop(self) -> None:
        if self._db is not None:
            with suppress(driver().Error):
                self._db.close()
        self._db = self._session = None

    @contextmanager
    def another(self) -> Iterator[psycopg.Connection[Any]]:
        """Opens one more connection, for what cannot take turns."""
        db, _is_pooled = self._opened()
        with closing(db):
            yield db

    def _connect(self) -> None:
        psycopg = driver()
        db, self.is_pooled = self._opened()
        db.prepare_threshold = None if self.is_pooled else _PREPARED_FROM
        # As text, every character of every element would be looked at for quotes.
        db.adapters.register_dumper(list, psycopg.types.array.ListBinaryDumper)
        self._check_encoding(db)
        self._db, self._session = db, ServerSession(db)

    def _opened(self) -> tuple[psycopg.Connection[Any], bool]:
        """Returns a connection, and whether a pooler is in between."""
        psycopg = driver()
        token = secrets.token_hex(8)
        given = psycopg.conninfo.conninfo_to_dict(self.address.url)
        options = f"{given.get('options') or ''} -c signoff.session={token}".strip()
        common = {name: value for name, value in DEFAULTS.items() if name not in given}
        common |= {"autocommit": True, "cursor_factory": psycopg.RawCursor}
        try:
            db = psycopg.connect(self.address.url, options=options, **common)
            # A pooler that ignores settings of a session would also mix up what is prepared.
            (kept,) = db.execute("SELECT current_setting('signoff.session', true)").fetchone()
        except psycopg.OperationalError as error:
            # Other poolers refuse settings that they cannot keep apart for each client.
            if "startup parameter" not in str(error):
                raise
            return psycopg.connect(self.address.url, **common), True
        return db, kept != token

    def _check_encoding(self, db: psycopg.Connection[Any]) -> None:
        encoding = db.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            db.close()
            raise StoreError(
                f"{self.address.label} stores texts as {encoding}; create a database with the "
                "encoding UTF8"
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raises the driver's errors as errors of the store."""
        try:
            yield
        except UnicodeEncodeError as error:
            raise store_error(self.address.label, error) from error
        except driver().Error as error:
            raise self._error(error) from error

    def _error(self, error: psycopg.Error) -> StoreError:
        if error.sqlstate == DENIED and self._session is not None:
            return denied_error(self._session, self.address, error)
        return store_error(self.address.label, error)
