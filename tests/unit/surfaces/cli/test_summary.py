import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signoff.app.runs.show import RunDetails
from signoff.core.outcome import Status
from signoff.core.run_state import RunState
from signoff.core.stop_reason import (
    BudgetReached,
    StepDecided,
    StopReason,
)
from signoff.notation import RunReport
from signoff.runtime.store_port import RunId, RunRow
from signoff.surfaces.cli.output import Output, moment
from signoff.surfaces.cli.summary import (
    WIDTH,
    detail_lines,
    file_line,
    headline,
    next_lines,
    print_summary,
)
from signoff.views.timeline import Timeline


def report(
    status: Status,
    *,
    reason: StopReason | None = None,
    due_at: float | None = None,
) -> RunDetails:
    row = RunRow(
        RunId(1), "one", "review", "flow.py", "d", status, "draft", 1, str(reason or ""), due_at,
        0, 0, 1, 1, None, None,
    )  # fmt: skip
    line = Timeline(RunState(status=status, stop_reason=reason))
    return RunDetails(row, line, (), (), Path("nowhere"))


@pytest.mark.parametrize(
    ("status", "command"),
    [
        (Status.FAILED, "signoff resume one"),
        (Status.FAILED, "signoff resume one --adopt"),
        (Status.LIMIT, "signoff resume one --adopt"),
        (Status.INTERRUPTED, "signoff resume one"),
        (Status.PARKED, "signoff resume --due"),
        (Status.RUNNING, "signoff logs -f one"),
    ],
)
def test_a_run_that_can_go_on_says_how(status: Status, command: str) -> None:
    """Users should never have to look up the next command."""
    assert any(command in text for text in next_lines(report(status, due_at=5.0)))


@pytest.mark.parametrize(
    ("reason", "command"),
    [
        (BudgetReached("run", "usd", 1.5), "signoff resume one --limit usd=NUMBER"),
        (BudgetReached("run", "seconds", 1.5), "signoff resume one --limit seconds=NUMBER"),
        (BudgetReached("step", "calls", 3, "draft"), "signoff resume one --adopt"),
    ],
)
def test_the_limit_that_was_reached_is_the_one_to_raise(reason: StopReason, command: str) -> None:
    """Raising another one changes nothing, and the one of a step is set in the workflow."""
    (hint,) = next_lines(report(Status.BUDGET, reason=reason))

    assert hint.endswith(command)


@pytest.mark.parametrize("status", [Status.NOT_CONVERGING, Status.REJECTED, Status.CANCELLED])
def test_a_run_that_cannot_be_resumed_suggests_a_new_one(status: Status) -> None:
    """Otherwise users try `resume`, which only prints the old result."""
    (hint,) = next_lines(report(status))

    assert hint == "this run has ended; start a new one: signoff run --again one"


def test_the_reason_of_a_bad_end_stands_in_the_first_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is the line people read."""
    print_summary(report(Status.FAILED, reason=StepDecided("no\nluck")), Output())

    assert capsys.readouterr().out.splitlines()[0] == "✗ failed  one: no luck"


def test_a_waiting_run_shows_what_is_asked_and_every_command_that_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a build server, this is all that users see."""
    request = {
        "number": 7,
        "kind": "choice",
        "prompt": "Which\none?",
        "options": [{"label": "a", "description": "the first"}, {"label": "b"}],
        "questions": [],
        "shown": {"content": "text"},
        "prompt_file": None,
        "deadline": None,
        "commands": ["signoff answer 7 a --resume", "signoff answer 7 b --resume"],
    }
    waiting = report(Status.WAITING)
    waiting = RunDetails(waiting.row, Timeline(), (), (request,), Path("nowhere"))

    print_summary(waiting, Output())

    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert printed[0] == "● waiting for a human  one"
    assert printed[-6:] == [
        "#7 decision: Which one?",
        "- a: the first",
        "- b",
        "details: signoff inbox 7",
        "signoff answer 7 a --resume",
        "signoff answer 7 b --resume",
    ]


def test_a_waiting_run_says_what_was_answered_already_and_how_to_go_on() -> None:
    """Without it, a recorded answer looks as if it had been lost."""
    answer = {"value": False, "text": "meddled", "by": "ann", "at": 1.0}
    given = {"number": 7, "kind": "approval", "answer": answer}
    waiting = replace(report(Status.WAITING), answered=(given,))

    assert list(next_lines(waiting)) == [
        "#7 approval: rejected by ann: meddled",
        "to continue with these answers, run: signoff resume one",
    ]


@pytest.mark.parametrize(
    ("target", "story", "hint"),
    [
        ("slogan.yaml", RunReport(), "raise max_iterations in slogan.yaml"),
        ("flow.py", None, "allow more rounds"),
        ("steps.yaml", None, "allow more rounds"),
    ],
)
def test_at_the_limit_the_file_that_sets_it_is_named(
    target: str, story: RunReport | None, hint: str
) -> None:
    """Users can allow more rounds once they know where the limit is set."""
    ended = report(Status.LIMIT)
    ended = replace(ended, row=ended.row._replace(target=target), notation_report=story)

    assert list(next_lines(ended)) == [f"{hint}, then: signoff resume one --adopt"]


def request(prompt: str, **more: Any) -> dict[str, Any]:
    return {
        "number": 7, "prompt": prompt, "shown": {}, "title": "", "prompt_file": None,
        "state": "open", "deadline": None, "at_deadline": None, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "line", "more"),
    [
        (request("Which\none?"), "Which one?", False),
        (request("Ship it?", shown={"content": "text"}), "Ship it?", True),
        (request("x" * (WIDTH + 1)), "x" * (WIDTH - 1) + "…", True),
        (request("See " + "x" * WIDTH), "See " + "x" * (WIDTH - 5) + "…", True),
        (request("word, " * WIDTH), ("word, " * WIDTH)[: WIDTH - 1] + "…", True),
        (request("You review.", title="Review against 'short'"), "Review against 'short'", True),
    ],
)
def test_a_line_says_what_a_request_is_about_and_whether_that_is_all(
    asked: dict[str, Any], line: str, more: bool
) -> None:
    """The prompts of ten critics start alike, and users have to find the part that is cut off."""
    assert headline(asked) == line
    assert list(detail_lines(asked)) == (["details: signoff inbox 7"] if more else [])


def test_a_long_prompt_for_a_response_names_the_file_that_holds_it_all(tmp_path: Path) -> None:
    """A chat window wants the whole text, not the first two hundred characters."""
    asked = request("x" * (WIDTH + 1), prompt_file=str(tmp_path / "hitl" / "7-prompt.md"))

    assert list(detail_lines(asked))[-1] == f"prompt: {tmp_path}/hitl/7-prompt.md"


@pytest.mark.parametrize(
    ("seconds", "state", "expected"),
    [
        (60, "open", "deadline: {at}, then it counts as rejected"),
        (-60, "open", "the deadline passed at {at}, and it counts as rejected"),
        (60, "answered", ""),
    ],
)
def test_a_deadline_is_shown_wherever_the_request_is_listed(
    seconds: float, state: str, expected: str
) -> None:
    """Users who read the output of a waiting `run` have to see the deadline."""
    at = time.time() + seconds
    asked = request("Ship?", deadline=at, state=state, at_deadline="it counts as rejected")

    assert list(detail_lines(asked)) == ([expected.format(at=moment(at))] if expected else [])


def test_the_line_of_a_file_says_whether_it_may_be_edited() -> None:
    """A user who does not know that would reject instead."""
    assert file_line({"path": "plan.md", "edits": None}) == "file: plan.md"
    assert file_line({"path": "plan.md", "edits": "accept"}).endswith(
        "(you can edit it before you approve)"
    )
