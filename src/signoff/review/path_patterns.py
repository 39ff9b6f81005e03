"""Patterns of paths, as in a `.gitignore`: one syntax wherever users name files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


def matches(patterns: Iterable[str], path: str) -> bool:
    """Whether the last pattern that is about a path includes it; `!` excludes again."""
    return _spec(tuple(patterns)).match_file(path)


@cache
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    # Only users who name paths wait for it.
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)
