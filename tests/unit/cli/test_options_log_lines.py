import logging

import pytest

from signoff.cli.options import LogLines


def record(name: str, message: str, error: Exception | None = None) -> logging.LogRecord:
    info = (type(error), error, None) if error is not None else None
    return logging.LogRecord(name, logging.WARNING, "x.py", 1, message, (), info)


def test_what_the_engine_logs_looks_like_every_other_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The name of a module means nothing to a user who runs a flow."""
    LogLines().emit(record("signoff.store.rundir.directory", "the directory is behind"))

    assert capsys.readouterr().err == "warning: the directory is behind\n"


def test_a_failure_is_one_line_unless_a_traceback_is_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A traceback in the middle of a run looks as if the run had failed."""
    failed = record("signoff", "observer X failed", OSError(28, "No space left"))

    LogLines().emit(failed)
    plain = capsys.readouterr().err
    LogLines(debug=True).emit(failed)
    whole = capsys.readouterr().err

    assert plain == "warning: observer X failed: [Errno 28] No space left\n"
    assert whole.splitlines()[0] == "warning: signoff: observer X failed"
    assert whole.splitlines()[-1] == "OSError: [Errno 28] No space left"


def test_the_same_line_is_not_said_twice_in_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    """An observer that fails at every event would fill the screen."""
    lines = LogLines()

    lines.emit(record("signoff", "observer X failed"))
    lines.emit(record("signoff", "observer X failed"))

    assert capsys.readouterr().err == "warning: observer X failed\n"
