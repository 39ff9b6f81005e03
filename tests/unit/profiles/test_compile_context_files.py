from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signoff.errors import InvalidParams
from signoff.profiles.compile import read_context_files

SCHEMA: Mapping[str, Mapping[str, Any]] = {
    "ddl": {"type": "path", "exists": True},
    "notes": {"type": "path", "exists": True},
    "target": {"type": "path"},
    "name": {"type": "string"},
}


def test_the_text_of_an_existing_file_is_added_under_the_name_of_its_field(tmp_path: Path) -> None:
    """A profile does no I/O, so it gets the text with its context."""
    (tmp_path / "shop.sql").write_text("create table é", "utf-8")
    other = tmp_path / "other.md"
    other.write_text("notes", "utf-8")

    texts = read_context_files(SCHEMA, {"ddl": "shop.sql", "notes": str(other)}, tmp_path)

    assert texts == {"ddl_text": "create table é", "notes_text": "notes"}


def test_other_fields_are_not_read(tmp_path: Path) -> None:
    """A path that need not exist, a folder or a field without a value has no text."""
    context = {"ddl": "", "notes": ".", "target": "missing.md", "name": "x.sql"}

    assert read_context_files(SCHEMA, context, tmp_path) == {}


def test_every_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    """The user fixes all of them at once."""
    (tmp_path / "binary.sql").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidParams) as error:
        read_context_files(SCHEMA, {"ddl": "binary.sql", "notes": "missing"}, tmp_path)

    assert [str(problem) for problem in error.value.problems] == [
        "ddl: binary.sql:1: cannot be read: it is not UTF-8 text",
        "notes: missing: does not exist",
    ]
