"""Small databases of the web server that only the user can read."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from signoff.app.home import Home
from signoff.databases import translate_errors
from signoff.documents.regular_files import create_private, make_private_folders


def private_path(home: Home, name: str) -> Path:
    """Returns the path of a file of the web server, in a folder for the user alone."""
    return home.private_folder("web") / name


def open_private(path: Path, *schema: str) -> sqlite3.Connection:
    """Opens a database, and creates it with these tables if it does not exist."""
    make_private_folders(path.parent)
    with suppress(FileExistsError):
        os.close(create_private(path))
    with translate_errors(path):
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # With a write-ahead log, reading never waits for a process that writes.
        db.execute("PRAGMA journal_mode = WAL")
        for statement in schema:
            db.execute(statement)
    return db
