"""Material as it appears in prompts."""

import pytest

from signoff.review.prompt_text import edit_lines
from signoff.review.work_order import Edit, EditKind

FIND = "  one\n[HIGH] x-001 violates y"


@pytest.mark.parametrize(
    ("edit", "lines"),
    [
        (
            Edit(EditKind.REPLACE, FIND, "two\n\n  three "),
            [
                "  exact edit, the text after each |: replace",
                "    |  one",
                "    |[HIGH] x-001 violates y",
                "  with",
                "    |two",
                "    |",
                "    |  three ",
            ],
        ),
        (
            Edit(EditKind.INSERT_AFTER, "one", "two"),
            [
                "  exact edit, the text after each |: insert after",
                "    |one",
                "  this",
                "    |two",
            ],
        ),
        (
            Edit(EditKind.DELETE, "one | two"),
            ["  exact edit, the text after each |: delete", "    |one | two"],
        ),
    ],
    ids=["replace", "insert", "delete"],
)
def test_an_exact_edit_is_shown_literally(edit: Edit, lines: list[str]) -> None:
    """An agent copies it, so spaces count; and no line of it can pass for another finding."""
    assert list(edit_lines(edit)) == lines
