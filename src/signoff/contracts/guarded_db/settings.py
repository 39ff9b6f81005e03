"""The `data:` section of the settings: the user's own database."""

from __future__ import annotations

from pydantic import Field

from signoff.documents.sections import Section


class DataSection(Section):
    """The database that `signoff db` maintains."""

    url: str | None = Field(None, min_length=1, description="the path of a SQLite file")
    """A SQLite file relative to the project's root."""
    migrations: str | None = Field(None, min_length=1, description="the path of a folder")
    """The folder of the numbered migrations."""
    backups: str | None = Field(None, min_length=1, description="the path of a folder")
    """The folder of the backups; None means next to the file."""
    keep: int = Field(10, ge=1, description="a whole number from 1")
    """How many backups of each origin are kept; those by hand always are."""
