import time
from pathlib import Path
from typing import Any

import pytest

from signoff.cli.summary import WIDTH, detail_lines, file_line, headline
from signoff.cli.text import moment


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
        (request("word, " * WIDTH), "word, " * 32 + "word,…", True),
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
