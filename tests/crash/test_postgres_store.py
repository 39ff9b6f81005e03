"""The stories that are killed at every write, on a PostgreSQL server."""

from pathlib import Path

from signoff.testing import crash_everywhere
from tests.crash import question_story
from tests.stubs.postgres import PostgresServer


def test_a_run_killed_at_any_write_ends_the_same_on_a_server(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """Nothing that was paid for is requested again, and no answer is lost or used twice."""
    new = postgres.new_schema

    survivals = list(crash_everywhere(question_story.story, tmp_path, when="after", new_store=new))

    assert len(survivals) > 5
    for survival in survivals:
        assert survival.repeated == []
        assert survival.runs[question_story.NAME].state == question_story.EXPECTED
