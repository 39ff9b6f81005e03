"""Tests of the profile. A profile does no I/O, so they need no engine and no model."""

import click
import pytest
from click.testing import CliRunner
from signoff_migration import MigrationProfile, register

from signoff.profiles import format_code_files

CONTEXT = {"change": "Users get a nickname.", "dialect": "sqlite"}


@pytest.mark.parametrize("phase", ["planning", "generation", "review", "revision"])
def test_every_prompt_states_the_change(phase):
    """A prompt may go to a model that has seen none of the others."""
    prompt = getattr(MigrationProfile(), f"generate_{phase}_prompt")(CONTEXT)

    assert "> Users get a nickname." in prompt
    assert "ALTER TABLE can do little" in prompt


def test_a_migration_without_a_way_back_is_refused():
    """The session waits until the response is fixed or rejected."""
    complete = MigrationProfile().process_generation_response(
        format_code_files({"up.sql": "a", "down.sql": "b"})
    )
    half = MigrationProfile().process_generation_response(format_code_files({"up.sql": "a"}))

    assert [op.path for op in complete.write_plan.writes] == ["up.sql", "down.sql"]
    assert half.error_message == "the response lacks down.sql"


def test_a_revision_may_change_one_file():
    """The other one is kept as it was."""
    result = MigrationProfile().process_revision_response(format_code_files({"down.sql": "b"}))

    assert [op.path for op in result.write_plan.writes] == ["down.sql"]


def test_its_command_is_added_to_the_group():
    """It appears as `signoff profile dialects`."""
    group = click.Group("profile")

    assert register(group) is MigrationProfile
    assert "postgresql" in CliRunner().invoke(group, ["dialects"]).output
