"""Patterns of paths."""

from __future__ import annotations

import pytest

from signoff.review.constraint import Constraint
from signoff.review.path_patterns import matches


@pytest.mark.parametrize(
    ("patterns", "path", "expected"),
    [
        (["*.md"], "docs/a.md", True),
        (["docs/"], "docs/deep/a.md", True),
        (["/a.md"], "docs/a.md", False),
        (["docs/**/*.md", "!docs/old/**"], "docs/old/a.md", False),
        ([], "a.md", False),
    ],
)
def test_patterns_are_those_of_a_gitignore(patterns: list[str], path: str, expected: bool) -> None:
    assert matches(patterns, path) is expected


def test_a_constraint_without_paths_applies_to_every_file() -> None:
    assert Constraint("tone").applies_to("a.py")
    assert not Constraint("tone", paths=("*.md",)).applies_to("a.py")
    assert Constraint("tone", paths=("*.md",)).applies_to("")
