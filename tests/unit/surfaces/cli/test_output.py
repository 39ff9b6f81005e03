import pytest

from signoff.surfaces.cli.output import Output


def test_a_table_that_goes_into_a_pipe_is_plain_and_complete(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A name cut with an ellipsis cannot be pasted into the next command."""
    Output().table(("RUN", "REASON"), [("a" * 90, "long\nreason"), ("b", "\x1b[31mred")])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["RUN", "REASON"]
    assert lines[1] == f"{'a' * 90}  long reason"
    assert lines[2].split() == ["b", "red"]
