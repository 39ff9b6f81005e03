import pytest

from signoff.app.settings.checks import Check, SetupReport
from signoff.surfaces.cli.commands.doctor import verdict

BROKEN = Check("disk", ready=False, detail="full")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (SetupReport(()), "ready to run"),
        (
            SetupReport((), advice=("install one",)),
            "the engine is ready, but no model that can review is: ",
        ),
        (SetupReport((BROKEN,)), "not ready: fix what is marked FAIL"),
        (SetupReport((BROKEN,), advice=("install one",)), "not ready: fix what is marked FAIL"),
    ],
)
def test_the_last_line_promises_no_more_than_there_is(found: SetupReport, expected: str) -> None:
    """`ready to run` without any agent is followed by a run that fails."""
    assert verdict(found).startswith(expected)
