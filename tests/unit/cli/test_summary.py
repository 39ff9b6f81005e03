from pathlib import Path

import pytest

from signoff.app.show import RunReport
from signoff.cli.output import Output
from signoff.cli.summary import report_to_json, summarise, what_next
from signoff.core.outcome import Status
from signoff.runtime.ports import RunId, RunRow
from signoff.runtime.timeline import Timeline


def report(status: Status, *, reason: str = "", due_at: float | None = None) -> RunReport:
    row = RunRow(
        RunId(1), "one", "review", "flow.py", "d", status, "draft", 1, reason, due_at, 0, 0, 1, 1,
        None, None,
    )  # fmt: skip
    return RunReport(row, Timeline(), (), (), (), Path("nowhere"))


@pytest.mark.parametrize(
    ("status", "command"),
    [
        (Status.FAILED, "signoff resume one"),
        (Status.LIMIT, "signoff resume one"),
        (Status.BUDGET, "signoff resume one --limit usd=NUMBER"),
        (Status.INTERRUPTED, "signoff resume one"),
        (Status.PARKED, "signoff resume --due"),
        (Status.RUNNING, "signoff logs -f one"),
    ],
)
def test_a_run_that_can_go_on_says_how(status: Status, command: str) -> None:
    """A person should never have to look up the next command."""
    assert any(command in text for text in what_next(report(status, due_at=5.0)))


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.REJECTED, Status.CANCELLED])
def test_a_run_that_has_ended_for_good_suggests_nothing(status: Status) -> None:
    """There is nothing left to do with it."""
    assert list(what_next(report(status))) == []


def test_the_reason_of_a_bad_end_stands_in_the_first_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is the line people read."""
    summarise(report(Status.FAILED, reason="no\nluck"), Output())

    assert capsys.readouterr().out.splitlines()[0] == "✗ failed  one: no luck"


def test_a_waiting_run_shows_what_is_asked_and_every_command_that_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a build server this is all the person gets to see."""
    request = {
        "number": 7,
        "kind": "choice",
        "prompt": "Which\none?",
        "shown": {"content": "text"},
        "commands": ["signoff answer 7 a --resume", "signoff answer 7 b --resume"],
    }
    waiting = report(Status.WAITING)
    waiting = RunReport(waiting.row, Timeline(), (), (request,), (), Path("nowhere"))

    summarise(waiting, Output())

    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert printed[0] == "● waiting for a person  one"
    assert printed[-4:] == [
        "#7 choice: Which one?",
        "look at it: signoff inbox 7",
        "signoff answer 7 a --resume",
        "signoff answer 7 b --resume",
    ]


def test_the_exit_code_stands_in_the_json_form() -> None:
    """Programs that read the report see the same promise as scripts."""
    assert report_to_json(report(Status.BUDGET))["exit_code"] == 12
    assert report_to_json(report(Status.RUNNING))["exit_code"] is None
