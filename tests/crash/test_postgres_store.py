"""Stories that are killed again and again on a PostgreSQL server.

`make test-postgres` kills every story at every write there.
"""

from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing import crash_at
from signoff.testing.crash import Story
from tests.crash import contract_story, qr_gate_story, report_story
from tests.stubs.postgres import PostgresServer

pytestmark = pytest.mark.slow

STORIES: dict[str, Story] = {
    "contract": contract_story.story,
    "quality review": qr_gate_story.story,
    "report": report_story.story,
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_run_ends_on_a_server_although_every_process_of_it_is_killed(
    tmp_path: Path, postgres: PostgresServer, story: Story
) -> None:
    """Nothing that was paid for is requested again."""
    new = postgres.new_schema

    survival = crash_at(story, tmp_path / "again", at=4, when="after", again=True, new_store=new)

    assert survival.deaths > 1
    assert [run.status for run in survival.runs.values()] == [Status.COMPLETED]
    assert survival.repeated == []
