from typing import Any

import pytest

from signoff.cli.headline import WIDTH, has_more, headline


def request(prompt: str, **more: Any) -> dict[str, Any]:
    return {"number": 7, "prompt": prompt, "shown": {}, "title": "", **more}


@pytest.mark.parametrize(
    ("asked", "line", "more"),
    [
        (request("Which\none?"), "Which one?", False),
        (request("Ship it?", shown={"content": "text"}), "Ship it?", True),
        (request("x" * (WIDTH + 1)), "x" * (WIDTH - 1) + "…", True),
        (request("You review.", title="Review against 'short'"), "Review against 'short'", True),
    ],
)
def test_a_line_says_what_a_request_is_about_and_whether_that_is_all(
    asked: dict[str, Any], line: str, more: bool
) -> None:
    """Ten critics' prompts all begin alike, and what is cut off has to be found."""
    assert headline(asked) == line
    assert has_more(asked) is more
