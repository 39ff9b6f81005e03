from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tests.tables import table


class Failures:
    """Stands in for the fixture `subtests`, which would fail this test."""

    def __init__(self) -> None:
        self.titles: list[str] = []

    @contextmanager
    def test(self, title: str) -> Iterator[None]:
        try:
            yield
        except AssertionError:
            self.titles.append(title)


async def test_every_row_of_a_table_that_fails_is_reported(tmp_path: Path) -> None:
    """A table that stops at its first failure, or passes without rows, would hide the others."""
    failures = Failures()

    @table(("number", "kind"), [(1, "odd"), (2, "odd"), (3, "odd"), (4, "odd")])
    def rows(number: int, kind: str, tmp_path: Path) -> None:
        assert [*tmp_path.iterdir()] == []
        (tmp_path / "left behind").touch()
        assert number % 2

    @table("number", {"first": 1, "second": 2})
    async def titled(number: int) -> None:
        assert number == 1

    rows(cast(Any, failures), tmp_path)
    await titled(cast(Any, failures), tmp_path)

    assert failures.titles == ["number=2, kind='odd'", "number=4, kind='odd'", "second"]
    with pytest.raises(ValueError, match="rows has a table without rows"):
        table("number", [])(rows)
