"""Globs, and patterns of paths."""

from pathlib import Path

import pytest

from signoff.documents.globs import glob, matches
from tests.tables import table

LONG_GLOB = "**/" * 16 + "*.x"


def folder_that_takes_long(folder: Path) -> Path:
    """Fills a folder in which `pathlib` would search for `LONG_GLOB` for years."""
    folder.joinpath(*["d"] * 24).mkdir(parents=True)
    return folder


def test_a_glob_with_many_double_stars_reads_each_folder_once(tmp_path: Path) -> None:
    """Searched again for each `**`, a tree of a few folders takes years."""
    folder = folder_that_takes_long(tmp_path)
    (folder / "d/d/a.x").touch()

    assert glob(folder, LONG_GLOB, 10) == [folder / "d/d/a.x"]
    assert glob(folder, "**/d/" * 12 + "*.x", 10) == []


@table(
    "pattern",
    [
        *(
            "*",
            "**",
            "**/*",
            "a/*.md",
            "a/**/*.md",
            "**/a/**/c/*",
            "a/**",
            "**/**/d.md",
            "a/b/c/d.md",
        ),
        *(
            "*/*",
            "link/*",
            "**/link/*",
            "**/.hidden",
            "[ab]/?.md",
            "none/**",
            "./a/*.md",
            "a/b.md/*",
        ),
    ],
)
def test_a_glob_finds_what_pathlib_finds(tmp_path: Path, pattern: str) -> None:
    for name in ("a/b.md", "a/b/c/d.md", "a/b/d.md", "b/c.md", ".hidden", "a/.hidden", "d.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "a/up").symlink_to("..")

    expected = set(tmp_path.glob(pattern))

    assert {*glob(tmp_path, pattern, 100)} == expected


@table(
    ("patterns", "path", "expected"),
    [
        (["*.md"], "docs/a.md", True),
        (["docs/"], "docs/deep/a.md", True),
        (["docs/"], "docs", False),
        (["docs"], "deep/docs/a.md", True),
        (["/a.md"], "docs/a.md", False),
        (["docs/*.md"], "other/docs/a.md", False),
        (["docs/*"], "docs/deep/a.md", True),
        (["docs/**"], "docs", False),
        (["docs/**"], "docs/deep/a.md", True),
        (["**/docs/a.md"], "docs/a.md", True),
        (["a/**/b"], "a/b", True),
        (["a/**/b"], "a/c/d/b/e", True),
        (["docs/**/*.md", "!docs/old/**"], "docs/old/a.md", False),
        (["!a.md", "*.md"], "a.md", True),
        (["# a.md", "", "  "], "a.md", False),
        ([r"\#a", r"\!b"], "!b", True),
        (["a.md   "], "a.md", True),
        (["[!a].md"], "b.md", True),
        (["[a"], "[a", True),
        (["/"], "a.md", False),
        ([], "a.md", False),
    ],
)
def test_patterns_are_those_of_a_gitignore(patterns: list[str], path: str, expected: bool) -> None:
    assert matches(patterns, path) is expected


@pytest.mark.parametrize("pattern", ["**/a" * 30 + "b", "a*" * 60 + "b", "**/*a" * 30 + "b"])
def test_a_pattern_that_backtracks_for_years_elsewhere_is_quick(pattern: str) -> None:
    """Constraints with paths come from repositories that others wrote."""
    assert not matches([pattern], "/".join(["a" * 60] * 60))
