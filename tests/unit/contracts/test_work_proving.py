import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from signoff.contracts.checkpoint import Checkpoint
from signoff.contracts.database import open_database
from signoff.contracts.model import Condition, Database
from signoff.contracts.work import StepContext, evaluate, problems_of
from signoff.core.errors import StepFailed

CONTEXT = StepContext("write", Checkpoint("run", "book", "write"))
KEY = ("run", "write", 1, "")


async def checked(check: Any, result: Any = None) -> str:
    """Returns the message about a condition that does not hold."""
    conditions = [Condition("changed", check, "Nothing changed")]
    (problem,) = await problems_of(conditions, CONTEXT.with_result(result, None))
    return problem


def raises(_ctx: StepContext) -> bool:
    raise KeyError("chapters")


async def waits(ctx: StepContext) -> bool:
    """Is written as a coroutine."""
    return bool(ctx.result)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda _ctx: False, "Nothing changed"),
        ("result.n > 3", "Nothing changed"),
        (waits, "Nothing changed"),
        (raises, "Nothing changed (changed raised KeyError: 'chapters'"),
        (lambda _ctx: "yes", "Nothing changed (changed raised TypeError: returned 'yes'"),
        (lambda _ctx: None, "Nothing changed (changed raised TypeError: returned None"),
        ("result.missing > 3", "Nothing changed (result has no 'missing')"),
        (lambda ctx: ctx.db.exists("SELECT 1"), "raised UsageError: this workflow has no data"),
    ],
)
async def test_a_condition_holds_only_if_it_is_true(check: Any, message: str) -> None:
    """A condition that raises, or returns anything else, proves nothing."""
    assert message in await checked(check, {"n": 1} if isinstance(check, str) else None)


@pytest.fixture
def hangs() -> Any:
    """A condition that ends when the test does."""
    end = threading.Event()

    def check(_ctx: StepContext) -> bool:
        return end.wait(60)

    yield check
    end.set()


async def test_a_branch_that_never_decides_is_abandoned(
    hangs: Callable[[StepContext], bool],
) -> None:
    """An author's endless loop must not block the whole run forever."""
    with pytest.raises(StepFailed, match=r"a condition took more than 0\.05 seconds"):
        await evaluate(hangs, CONTEXT, seconds=0.05)


async def test_a_timeout_error_of_the_author_is_passed_on() -> None:
    """It says more than that the condition took too long, which it did not."""

    def times_out(_ctx: StepContext) -> bool:
        raise TimeoutError("the printer is slow")

    with pytest.raises(TimeoutError, match="printer"):
        await evaluate(times_out, CONTEXT)


def test_a_result_belongs_to_the_work_it_was_committed_with(tmp_path: Path) -> None:
    """If an attempt that seemed lost was committed first, its result counts."""
    sqlite3.connect(tmp_path / "book.db").execute("CREATE TABLE notes (text)").connection.close()
    database = open_database(Database(str(tmp_path / "book.db")))
    first, second = database.begin(), database.begin()
    first.commit([], KEY, "the first")

    stored = second.commit([("no", lambda _view: False, "", False)], KEY, "the second")

    assert stored == "the first"
