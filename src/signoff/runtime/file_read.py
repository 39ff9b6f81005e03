"""Reads a file of a run as text that can be recorded, for `ctx.read` and for approvals.

What a file contains becomes part of the journal, so a file that cannot be recorded exactly as it
is, such as one with a known secret, is refused.
"""

from __future__ import annotations

import hashlib

from signoff.core.effects import FileRead
from signoff.errors import UnreadableFile
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import FilePort


def read_text(files: FilePort, secrets: Secrets, run: str, path: str) -> FileRead | None:
    """Returns a file of a run; None if there is none. Raises `UnsafePath` or `UnreadableFile`."""
    data = files.read(run, path)
    if data is None:
        return None
    try:
        # As it is written: a model may send half of a surrogate pair, and the run must be able to
        # read what it wrote.
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise UnreadableFile(
            f"{path} is not UTF-8 text ({error.reason} at {error.start})"
        ) from error
    variable = secrets.name_in(text)
    if variable:
        raise UnreadableFile(
            f"{path} contains the value of {variable}, which would be stored; take it out"
        )
    return FileRead(path, text, hashlib.sha256(data).hexdigest())
