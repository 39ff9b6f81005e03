import logging
from typing import Any

import click
import pytest

from signoff.surfaces.cli.options import Group, LogLines, command, inputs
from signoff.surfaces.cli.output import Output


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("topic=a = b", {"topic": "a = b"}),
        ("topic=", {"topic": ""}),
        ("tags=[1]", {"tags": "[1]"}),
        ('tags:=["a, b", "c"]', {"tags": ["a, b", "c"]}),
        ('book := {"words": 3}', {"book": {"words": 3}}),
        ("count:=3", {"count": 3}),
    ],
)
def test_a_parameter_is_text_unless_it_is_marked_as_json(text: str, params: dict[str, Any]) -> None:
    """Without it, lists could only be passed to workflows that declare them."""
    assert inputs([text]) == params


@pytest.mark.parametrize("text", ["topic", "=x", "tags:=[1", "tags:=a,b", "tags:=" + "[" * 9000])
def test_a_parameter_that_cannot_be_read_is_refused(text: str) -> None:
    """Guessing could start a run with the wrong values."""
    with pytest.raises(click.BadParameter):
        inputs([text])


def test_a_placeholder_that_was_not_replaced_is_refused() -> None:
    """A command that was shown and pasted as it is would start a run about nothing."""
    with pytest.raises(click.BadParameter, match="'topic' still has its placeholder <topic>"):
        inputs(["topic=<topic>"])

    assert inputs(["topic=<b>"]) == {"topic": "<b>"}


@pytest.mark.parametrize("second", ["tag=b", "tag:=[]"])
def test_a_repeated_parameter_is_refused_with_the_syntax_of_a_list(second: str) -> None:
    """The first one would be lost silently."""
    with pytest.raises(click.BadParameter, match=r"'tag' is given twice; .* tag:='\["):
        inputs(["tag=a", second])


def record(name: str, message: str, error: Exception | None = None) -> logging.LogRecord:
    info = (type(error), error, None) if error is not None else None
    return logging.LogRecord(name, logging.WARNING, "x.py", 1, message, (), info)


def test_what_the_engine_logs_looks_like_every_other_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The name of a module means nothing to a user who runs a flow."""
    LogLines().emit(record("signoff.views.run_directory.directory", "the directory is behind"))

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


def test_every_command_can_print_json_and_lists_that_option_last() -> None:
    """Its own options are what the reader of its help is looking for."""
    group = Group("work")

    @command("list", group=group)
    @click.option("--limit")
    def list_(limit: str | None, out: Output) -> None:
        assert (limit, out.as_json) == ("2", True)

    group.main(["list", "--limit", "2", "--json"], standalone_mode=False)

    assert [each.name for each in group.commands["list"].params] == ["limit", "as_json", "debug"]
