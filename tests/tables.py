"""One test for a whole table of values.

`pytest.mark.parametrize` makes each row a test with its own collection, set-up and report.
For hundreds of rows through one path that costs more than the path itself.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

LONGEST_VALUE = 200
"""Characters of a value in the title of a row: enough to find the row."""

Names = str | tuple[str, ...]
Rows = Iterable[Any] | Mapping[str, Any]
Row = tuple[str, dict[str, Any]]


def table(names: Names, rows: Rows) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Calls a test with every row, as subtests: all rows that fail are reported, each by its title.

    The keys of a mapping are the titles; the rows of anything else are titled by their values.
    `tmp_path` is a new folder for each row. A test gets no other fixture, because all rows would
    share it: a test that needs one has a loop of its own, with the fixture `subtests`.
    """
    titled = [*_titled(names, rows)]

    def fold(test: Callable[..., Any]) -> Callable[..., Any]:
        if not titled:
            raise ValueError(f"{test.__name__} has a table without rows")

        if inspect.iscoroutinefunction(test):

            @wraps(test)
            async def each_row(subtests: pytest.Subtests, tmp_path: Path) -> None:
                for title, arguments in _with_folders(test, titled, tmp_path):
                    with subtests.test(title):
                        await test(**arguments)

        else:

            @wraps(test)
            def each_row(subtests: pytest.Subtests, tmp_path: Path) -> None:
                for title, arguments in _with_folders(test, titled, tmp_path):
                    with subtests.test(title):
                        test(**arguments)

        # pytest would ask for the names of the table as fixtures: `wraps` refers to the test.
        signature = inspect.signature(each_row, follow_wrapped=False)
        each_row.__signature__ = signature  # type: ignore[attr-defined]  # read by `inspect`
        return each_row

    return fold


def _titled(names: Names, rows: Rows) -> Iterator[Row]:
    keys = (names,) if isinstance(names, str) else names
    pairs = rows.items() if isinstance(rows, Mapping) else (("", row) for row in rows)
    for title, row in pairs:
        values = dict(zip(keys, (row,) if isinstance(names, str) else row, strict=True))
        shown = (f"{name}={value!a:.{LONGEST_VALUE}}" for name, value in values.items())
        yield title or ", ".join(shown), values


def _with_folders(test: Callable[..., Any], rows: list[Row], tmp_path: Path) -> Iterator[Row]:
    if "tmp_path" not in inspect.signature(test).parameters:
        yield from rows
        return
    for number, (title, values) in enumerate(rows):
        folder = tmp_path / str(number)
        folder.mkdir()
        yield title, {**values, "tmp_path": folder}
