import re
from pathlib import Path

import pytest

from signoff.core import errors
from signoff.core.outcome import Status
from signoff.surfaces.cli.entry import signoff
from signoff.surfaces.cli.exits import (
    INTERRUPTED,
    NOT_ACCEPTED,
    OF_STATUS,
    USAGE,
    code_of_error,
    code_of_several,
    exit_code,
)

PROMISED = {
    Status.COMPLETED: 0,
    Status.FAILED: 1,
    Status.WAITING: 10,
    Status.LIMIT: 11,
    Status.BUDGET: 12,
    Status.NOT_CONVERGING: 13,
    Status.REJECTED: 14,
    Status.CANCELLED: 15,
    Status.FINDINGS: 17,
    Status.INCOMPLETE: 18,
    Status.PARKED: 75,
    Status.INTERRUPTED: 130,
}


def test_the_codes_are_the_ones_that_were_promised() -> None:
    """Scripts branch on them."""
    assert OF_STATUS == PROMISED


def test_the_help_and_the_page_of_commands_list_every_code() -> None:
    """A code that is looked up and not found could mean anything."""
    page = (Path(__file__).parents[4] / "docs/commands.md").read_text()
    listed = str(signoff.epilog).partition("Exit codes:")[2].partition("Shell completion")[0]

    codes = {*OF_STATUS.values(), USAGE, NOT_ACCEPTED}
    assert {int(code) for code in re.findall(r"\b\d+\b", listed)} == codes
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == codes


def test_every_way_to_rest_has_a_code_and_only_completion_has_zero() -> None:
    """`signoff run ... && deploy` must be safe for every status there will ever be."""
    assert set(Status) - set(OF_STATUS) == {Status.QUEUED, Status.RUNNING}
    assert [status for status, code in OF_STATUS.items() if code == 0] == [Status.COMPLETED]
    assert exit_code(Status.RUNNING) == INTERRUPTED


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UsageError("x"), 2),
        (errors.NameTaken("x"), 2),
        (errors.UnknownName("run", "x"), 2),
        (errors.InvalidAnswer("x"), 2),
        (errors.InvalidWorkflow("x", []), 2),
        (errors.InvalidParams([]), 2),
        (errors.ConfigError("x"), 2),
        (errors.StaleApproval("x"), 1),
        (errors.RunBusy("x"), 1),
        (errors.DefinitionChanged("x"), 1),
        (errors.StoreDamaged("x"), 1),
        (errors.EngineError("x"), 1),
    ],
)
def test_a_mistake_of_usage_is_told_from_a_failure(error: errors.SignoffError, code: int) -> None:
    """2 means: what was typed or written has to change before anything can run."""
    assert code_of_error(error) == code


@pytest.mark.parametrize(
    ("codes", "code"), [([], 0), ([0, 0], 0), ([0, 10], 10), ([10, 1, 0], 1), ([75, 10], 10)]
)
def test_several_runs_have_one_code_that_hides_no_trouble(codes: list[int], code: int) -> None:
    """A nightly `resume --due` is judged as a whole."""
    assert code_of_several(codes) == code
