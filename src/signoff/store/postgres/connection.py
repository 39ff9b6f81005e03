"""One connection to a server, which is opened again when it was lost.

Nothing relies on a session: no settings, no open transactions, no prepared statements where a
pooler gives each transaction another session. So what a call does is one statement, or a few
that are sent together and are one transaction, and after a loss it can be done again.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from signoff.core import errors
from signoff.core.remedies import SetPassword, SetUpStore
from signoff.store.commits import Row
from signoff.store.connection import Migration, read_migrations
from signoff.store.databases import driver, label_of
from signoff.store.postgres.queries import in_schema

if TYPE_CHECKING:
    import psycopg


# Turns the driver's errors into errors of signoff, and tells which of them pass by themselves.


DENIED = "42501"
_NONE_SUPPLIED = "no password supplied"
"""libpq found no password, neither in its address nor in the environment or a file."""


class _Trouble(NamedTuple):
    """A kind of error: how it is recognized, what it means, and what fixes it."""

    codes: tuple[str, ...]
    """How the codes of such errors begin."""
    kind: type[errors.StoreError]
    problem: str
    fix: str
    texts: tuple[str, ...] = ()
    """What is in the text of such an error while connecting, which has no code."""
    is_retried: bool = False
    """Whether nothing was done, so that it can be done again."""
    is_lost: bool = False
    """Whether the server was lost or cannot take us; whether it did the last thing is unknown."""


_UNREACHABLE = _Trouble(
    ("08", "57P"),
    errors.WriteFailed,
    "cannot be reached",
    "check that the server runs",
    is_lost=True,
)
_NOT_LET_IN = "check the user, the password and the name of the database in its address"
_TROUBLES = (
    # Waiting does not change that the server will not let us in.
    _Trouble(
        ("28", "3D000"), errors.StoreError, "refuses the connection", _NOT_LET_IN,
        (_NONE_SUPPLIED, "authentication failed", "does not exist", "not permitted to log in",
         "no pg_hba.conf"),
    ),
    _Trouble(
        ("53100", "53200"), errors.WriteFailed, "is out of space", "free some, then resume",
        is_retried=True,
    ),
    _Trouble(
        ("40001", "40P01", "55P03"), errors.StoreBusy, "is locked by another session", "try again",
        is_retried=True,
    ),
    _Trouble(
        ("53300",), errors.StoreBusy, "has no free connection",
        "use a pooler, or raise max_connections",
        ("too many clients", "too many connections", "connection slots are reserved"),
        is_lost=True,
    ),
    # The server is a standby: after a failover, another one accepts writes.
    _Trouble(
        ("25006",), errors.WriteFailed, "is read-only", "connect to the primary server",
        is_lost=True
    ),
    _UNREACHABLE,
    _Trouble(("53",), errors.WriteFailed, "has reached a limit", "raise it, then resume"),
    _Trouble(("XX",), errors.StoreDamaged, "is damaged", "restore a backup"),
)  # fmt: skip
"""The first that fits an error counts."""


def _trouble(error: psycopg.Error) -> _Trouble | None:
    psycopg, code = driver(), error.sqlstate or ""
    for each in _TROUBLES:
        if code.startswith(each.codes) if code else any(text in str(error) for text in each.texts):
            return each
    no_answer = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return _UNREACHABLE if not code and no_answer else None


def store_error(label: str, error: psycopg.Error | UnicodeEncodeError) -> errors.StoreError:
    """Returns the error to raise, which names the database and the fix."""
    if isinstance(error, UnicodeEncodeError):
        return errors.StoreError(f"a name contains half a character and cannot be stored: {error}")
    if _NONE_SUPPLIED in str(error):
        problem = f"{label} needs a password, and none was given"
        return errors.StoreError(problem, remedy=SetPassword())
    # The first line of the driver's message contains no password.
    lines = str(error).strip().splitlines() or [type(error).__name__]
    reason, trouble = lines[0].removeprefix("connection failed: "), _trouble(error)
    if trouble is None:
        return errors.StoreError(f"{label}: {reason}")
    return trouble.kind(f"{label} {trouble.problem} ({reason}); {trouble.fix}")


# The address of a PostgreSQL store: a libpq URL, with the schema as one more option.


DEFAULT_SCHEMA = "signoff"

_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_OPTION = "schema="


@dataclass(frozen=True, repr=False)
class ServerAddress:
    """Where a store's tables are; it has no repr, because the URL may contain a password."""

    url: str
    """As the driver reads it."""
    schema: str
    label: str
    """The database and its host, for messages."""


def read_address(text: str) -> ServerAddress:
    """Reads `postgresql://user@host/name?schema=signoff`; libpq gets all other options."""
    base, _, query = text.partition("?")
    options = query.split("&") if query else []
    schemas = [each.removeprefix(_OPTION) for each in options if each.startswith(_OPTION)]
    schema = schemas[-1] if schemas else DEFAULT_SCHEMA
    if not _SCHEMA.fullmatch(schema):
        raise errors.ConfigError(
            f"the schema in the database's address is {schema!r}; write lowercase letters, "
            "digits and _, not starting with a digit or pg_"
        )
    others = "&".join(each for each in options if not each.startswith(_OPTION))
    url = f"{base}?{others}" if others else base
    return ServerAddress(url, schema, label_of(url))


T = TypeVar("T")

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
    """An open connection, for one call; it sends statements about the tables of its schema."""

    def __init__(self, db: psycopg.Connection[Any], schema: str) -> None:
        self._db = db
        self.schema = schema
        # Numbers and times as text would be parsed again here, which takes half of a long list.
        self._cursor = db.cursor(binary=True)
        self._opened_at = time.monotonic()

    @property
    def age_seconds(self) -> float:
        """For how long the server could be reached without an interruption."""
        return time.monotonic() - self._opened_at

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Runs a statement and returns its rows."""
        return self._cursor.execute(in_schema(sql, self.schema), values).fetchall()

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Runs a statement and returns how many rows it changed."""
        return self._cursor.execute(in_schema(sql, self.schema), values).rowcount

    def run_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Runs a statement once for each row of values, in one round trip."""
        if rows:
            self._cursor.executemany(in_schema(sql, self.schema), rows)

    def together(self, *statements: tuple[str, Sequence[object]]) -> list[list[Row]]:
        """Runs statements in one transaction and one round trip; returns the rows of each."""
        with self._db.pipeline():
            cursors = [
                self._db.execute(in_schema(sql, self.schema), values, binary=True)
                for sql, values in statements
            ]
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
            raise errors.StoreError(f"{self.address.label} was closed by this program")
        if self._session is None:
            self._connect()
        return self._session  # type: ignore[return-value]  # _connect has set it

    def _passes(self, error: psycopg.Error) -> bool:
        """Whether trying again may help; a lost connection is dropped."""
        trouble = _trouble(error)
        if trouble is not None and trouble.is_lost:
            self._drop()
        return trouble is not None and (trouble.is_lost or trouble.is_retried)

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
        self._db, self._session = db, ServerSession(db, self.address.schema)

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
            raise errors.StoreError(
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
            if error.sqlstate == DENIED and self._session is not None:
                raise _denied(self.address, str(error).splitlines()[0]) from error
            raise store_error(self.address.label, error) from error


# What the role of the workers may do: change rows, and nothing else.


RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")

_LACKS_RIGHTS = """
SELECT 1 WHERE NOT has_schema_privilege($1::text, 'USAGE') OR EXISTS (
    SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace,
                  unnest($2::text[]) AS privilege
    WHERE nspname = $1::text AND relkind = 'r' AND NOT has_table_privilege(pg_class.oid, privilege)
)
"""


def check_grants(session: ServerSession, address: ServerAddress) -> None:
    """Raises `StoreError` if the role lacks a right on a table, before a run needs it."""
    if session.rows(_LACKS_RIGHTS, [address.schema, list(RIGHTS)]):
        raise _denied(address, "the role lacks rights on signoff's tables")


def _denied(address: ServerAddress, reason: str) -> errors.StoreError:
    return errors.StoreError(f"{address.label}: {reason}", remedy=SetUpStore())


# Creates the tables of a store, and brings older ones to the current schema.
#
# Numbered migrations, applied in one transaction under an advisory lock, so of many workers that
# start at once one applies them. A new schema is created when it is first opened. An older one is
# changed only when an administrator asks for it: the server has no copy of the data, and other
# workers may still run the previous version.


LATEST = 1
"""The newest migration's number, here so that opening a current schema reads no SQL files."""

_VERSION = "SELECT coalesce(max(version), 0) FROM {s}.schema_migrations"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 20261117))"
_TRACKING_TABLE = """
CREATE TABLE IF NOT EXISTS {s}.schema_migrations (
    version bigint PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
)
"""


def shipped_migrations() -> list[Migration]:
    """Returns the migrations this version ships, in order."""
    return read_migrations(resources.files("signoff.store.postgres").joinpath("migrations"))


def check_schema(session: ServerSession, address: ServerAddress) -> None:
    """Creates the tables where there are none; raises if they are of another version."""
    version = refuse_newer(session, address)
    if version == LATEST:
        return
    if version:
        raise errors.StoreError(
            f"the tables in schema {address.schema} of {address.label} have version {version}, and "
            f"this signoff needs {LATEST}; back them up, stop the workers of the older version, "
            "then upgrade them",
            remedy=SetUpStore(),
        )
    migrate(session, address)


def refuse_newer(session: ServerSession, address: ServerAddress) -> int:
    """Returns the version of the tables; raises `StoreTooNew` if this program is older."""
    version = schema_version(session)
    check_version(version, address)
    return version


def check_version(version: int, address: ServerAddress) -> None:
    """Raises `StoreTooNew` if the tables have a version that this program does not know."""
    if version > LATEST:
        raise errors.StoreTooNew(
            f"the tables in schema {address.schema} of {address.label} were written by a newer "
            f"signoff (version {version}; this one has {LATEST}); upgrade signoff"
        )


def schema_version(session: ServerSession) -> int:
    """Returns the number of the last migration that was applied; 0 if there are no tables."""
    errors = driver().errors
    with suppress(errors.UndefinedTable, errors.InvalidSchemaName):
        ((version,),) = session.rows(_VERSION)
        return int(version)
    return 0


def migrate(
    session: ServerSession, address: ServerAddress, migrations: Sequence[Migration] | None = None
) -> None:
    """Applies the missing migrations in one transaction, together with their records.

    A process that opens the schema meanwhile finds all of them applied, or none.
    """
    shipped, schema = shipped_migrations() if migrations is None else migrations, address.schema
    with session.transaction():
        session.rows(_LOCK, [f"signoff {schema}"])
        # Another process may have applied them while this one waited for the lock.
        version = _version_in_transaction(session)
        missing = [each for each in shipped if each.version > version]
        for statement in _preparation(schema) if missing else ():
            session.run(statement)
        for migration in missing:
            for statement in _changes(schema, migration):
                session.run(statement)


def setup_sql(address: ServerAddress, role: str) -> str:
    """Returns what an administrator runs to create or upgrade the tables.

    The role may then change rows. Migrations that were applied before are skipped.
    """
    schema, user = address.schema, '"' + role.replace('"', '""') + '"'
    lines = ["BEGIN;", *(f"{each};" for each in _preparation(schema))]
    for migration in shipped_migrations():
        known = f'SELECT 1 FROM "{schema}".schema_migrations WHERE version = {migration.version}'
        lines += [
            "DO $signoff$ BEGIN",
            f"IF NOT EXISTS ({known}) THEN",
            *(f"{each};" for each in _changes(schema, migration)),
            "END IF;",
            "END $signoff$;",
        ]
    lines += [
        f'GRANT USAGE ON SCHEMA "{schema}" TO {user};',
        f'GRANT {", ".join(RIGHTS)} ON ALL TABLES IN SCHEMA "{schema}" TO {user};',
        "COMMIT;",
    ]
    return "\n".join(lines) + "\n"


def _preparation(schema: str) -> list[str]:
    return [
        f'CREATE SCHEMA IF NOT EXISTS "{schema}"',
        f'SET LOCAL search_path = "{schema}"',
        in_schema(_TRACKING_TABLE, schema).strip(),
    ]


def _changes(schema: str, migration: Migration) -> list[str]:
    """Returns a migration's statements; the last one records that it was applied."""
    number, name = migration.version, migration.name
    record = (
        f"INSERT INTO \"{schema}\".schema_migrations (version, name) VALUES ({number}, '{name}')"
    )
    return [*_split(migration.sql), record]


def _version_in_transaction(session: ServerSession) -> int:
    """Returns the version without an error, which would end the transaction."""
    exists = session.rows("SELECT to_regclass($1)", [f'"{session.schema}".schema_migrations'])
    return schema_version(session) if exists != [(None,)] else 0


def _split(sql: str) -> list[str]:
    """Splits a script, which the protocol takes one statement at a time; none has a `;` inside."""
    lines = [line for line in sql.splitlines() if not line.lstrip().startswith("--")]
    return [each.strip() for each in "\n".join(lines).split(";") if each.strip()]
