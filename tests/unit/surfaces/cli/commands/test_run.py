import pytest

from signoff.surfaces.cli import main
from signoff.surfaces.cli.exits import USAGE

PULL = "--detach cannot be combined with --pull"
NEEDS = "--needs requires --detach"


@pytest.mark.parametrize(
    ("options", "problem", "other"),
    [(["--needs", "gpu"], NEEDS, PULL), (["--pull", "--detach"], PULL, NEEDS)],
)
def test_only_the_rule_that_was_broken_is_reported(
    capsys: pytest.CaptureFixture[str], options: list[str], problem: str, other: str
) -> None:
    """A user looks for the option that the message names, and has not typed it."""
    assert main(["run", "flow.yaml", *options]) == USAGE

    printed = capsys.readouterr().err
    assert problem in printed
    assert other not in printed
