"""Reviews of this project's own pages and code: text that was not written for a test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.acceptance.review_project import ReviewProject, finds, issue

ROOT = Path(__file__).parents[2]
PARTS = ("docs", "src/signoff/review")
SENTENCE = "# One more line, and one finding."


@pytest.fixture
def own_files(review_project: ReviewProject) -> ReviewProject:
    """A repository with the pages of this project and a part of its code."""
    shutil.rmtree(review_project.folder / "docs")
    for part in PARTS:
        shutil.copytree(
            ROOT / part,
            review_project.folder / part,
            ignore=shutil.ignore_patterns("__pycache__", "*.png"),
        )
    review_project.commit("Our own files")
    return review_project


def test_a_review_of_everything_finds_what_blocks_at_its_line(own_files: ReviewProject) -> None:
    path = "src/signoff/review/finding.py"
    text = own_files.read(path)
    passage = next(line for line in text.splitlines() if line.startswith("class Finding"))
    own_files.script(finds(issue(path, passage), contains=f"FILE {path}"))

    result = own_files.review(*PARTS, "--yes")

    line = text.splitlines().index(passage) + 1
    assert result.code == 17, result.err
    assert result.out.startswith(f"{path}:{line}: HIGH tone/sure: Too sure.")


def test_a_review_of_everything_without_findings_succeeds(own_files: ReviewProject) -> None:
    assert own_files.review(*PARTS, "--yes").code == 0


@pytest.mark.parametrize(("line", "codes"), [(-1, [17, 17]), (-2, [0, 17])])
def test_only_a_finding_about_the_change_blocks_it(
    own_files: ReviewProject, line: int, codes: list[int]
) -> None:
    """The line before the change is shown to critics, but was there before."""
    path = "src/signoff/review/severity.py"
    own_files.git("checkout", "-q", "-b", "topic")
    own_files.write(path, f"{own_files.read(path)}{SENTENCE}\n")
    own_files.commit("Say one more thing")
    evidence = own_files.read(path).splitlines()[line]
    own_files.script(finds(issue(path, evidence), contains="Say one more thing"))

    changed = own_files.review("--diff", "main")
    every = own_files.review("--diff", "main", "--all-lines", "--name", "two")

    assert [changed.code, every.code] == codes, changed.out + changed.err
