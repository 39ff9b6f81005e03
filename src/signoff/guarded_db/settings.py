"""The `data:` section of the settings: the user's own database."""

from __future__ import annotations

from pydantic import Field

from signoff.documents.sections import Section


class DataSection(Section):
    """The database that workflows work on and `signoff db` maintains."""

    url: str | None = Field(
        None, min_length=1, description="a file, or postgresql://user@host/name"
    )
    """A file, seen from the project's root, or a `postgresql://` address."""
    migrations: str | None = Field(None, min_length=1, description="the path of a folder")
    """The folder of its numbered changes."""
    backups: str | None = Field(None, min_length=1, description="the path of a folder")
    """Where copies are stored; None means beside the file."""
    keep: int = Field(10, ge=1, description="a whole number from 1")
    """How many copies are kept."""
