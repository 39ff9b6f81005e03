import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Status
from signoff.testing.doubles import When
from tests.crash import contract_story
from tests.crash.harness import crash_everywhere

STEPS = [
    ("strategic-planning", 1, ""),
    ("create-version", 1, ""),
    ("writer", 1, "0:c1"),
    ("writer", 1, "1:c2"),
    ("editor-review", 1, ""),
    ("writer", 2, "0:c1"),
    ("writer", 2, "1:c2"),
    ("editor-review", 2, ""),
    ("domain-expert-review", 1, ""),
    ("chapter-review", 1, ""),
    ("human-gate", 1, ""),
    ("finalize", 1, ""),
]
KINDS = ["domain_expert_review", "editor_review", "editor_review", "final", "metrics"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_book_editing_killed_at_any_write_still_publishes_the_book(
    tmp_path: Path, when: When
) -> None:
    """A step's work is in the database exactly once: neither lost nor done again."""
    survivals = list(crash_everywhere(contract_story.story, tmp_path, when=when))

    whole = survivals[-1]
    assert whole.deaths == 0
    assert len(whole.performed) == len(set(whole.performed)) == 8
    for survival in survivals:
        where = f"killed {survival.when} write {survival.at}"
        (run,) = survival.runs.values()
        assert run.status is Status.COMPLETED, where
        assert survival.repeated == [], where
        assert set(survival.performed) == set(whole.performed), where
        assert results(run.state) == results(whole.runs[contract_story.NAME].state), where
        database = tmp_path / f"{when}-{survival.at}" / contract_story.BOOK
        assert sorted(contents(database)) == EXPECTED, where


EXPECTED = sorted(
    [
        *(("done", *step) for step in STEPS),
        *(("artifact", kind) for kind in KINDS),
        ("version", "lighthouse-v1", "replaced"),
        ("version", "lighthouse-v2", "published"),
        *(("chapter", number, text) for number, text in contract_story.FINAL),
        ("measured", 6),
        ("plans", 1),
        ("run", contract_story.NAME, "completed"),
    ]
)
"""What the run leaves in the book's database, no matter how often it was killed."""


def contents(database: Path) -> Iterator[tuple[Any, ...]]:
    """Yields the rows that the run has written."""
    with closing(sqlite3.connect(database)) as db:
        yield from db.execute("SELECT 'done', step, visit, item FROM signoff_steps")
        yield from db.execute("SELECT 'artifact', kind FROM workflow_artifacts")
        yield from db.execute("SELECT 'version', id, status FROM book_versions")
        yield from db.execute(
            "SELECT 'chapter', number, text FROM chapters WHERE version_id = 'lighthouse-v2'"
        )
        yield from db.execute("SELECT 'measured', count(*) FROM metrics")
        yield from db.execute("SELECT 'plans', count(*) FROM strategic_plans")
        yield from db.execute("SELECT 'run', id, status FROM workflow_runs")


def results(state: Any) -> dict[str, Any]:
    """Returns the results of the steps, without their times."""
    done = [(each["step"], each["result"]) for each in state["_completed"]]
    return {**{key: state[key] for key in state if not key.startswith("_")}, "done": done}
