import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from signoff.core.requests import ItemState
from signoff.testing.crash_child import open_story_store
from signoff.testing.doubles import When
from tests.crash import external_work_story
from tests.crash.harness import crash_everywhere


@pytest.mark.parametrize("when", ["before", "after"])
def test_external_work_is_done_once_if_the_worker_is_killed_at_any_write(
    tmp_path: Path, when: When
) -> None:
    """Submitted work counts once, and no worker is asked for it again."""
    survivals = list(crash_everywhere(external_work_story.story, tmp_path, when=when))

    assert len(survivals) > 10
    for survival in survivals:
        where = f"killed {when} write {survival.at}"
        folder = tmp_path / f"{when}-{survival.at}"
        with closing(open_story_store(folder)) as store:
            items = store.items(external_work_story.RUN, state=tuple(ItemState))
        assert [item.state for item in items] == ["used"] * 4 + ["open"], where
        with closing(sqlite3.connect(folder / "book.db")) as db:
            words = [row[0] for row in db.execute("SELECT words FROM chapters ORDER BY id")]
        assert words == [200, 200, 0], where
