"""Every example does what it says, from a copy of its folder."""

import shutil
from pathlib import Path

import pytest

from tests.acceptance.pages import sections
from tests.acceptance.reader import Reader

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(p.parent for p in (ROOT / "examples").glob("*/README.md"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_does_what_its_readme_says(example: Path, tmp_path: Path) -> None:
    """Examples are copied more often than anything else is read."""
    reader = Reader(tmp_path)
    shutil.copytree(example, reader.folder, dirs_exist_ok=True)
    blocks = [block for section in sections(example / "README.md") for block in section.blocks]

    problems = [reader.tries(block) for block in blocks]

    assert blocks
    assert [problem for problem in problems if problem] == []


def test_every_example_is_explained() -> None:
    """A folder without a README would be no test, and no example either."""
    folders = [p.name for p in (ROOT / "examples").iterdir() if any(p.rglob("*.py"))]

    assert sorted(folders) == [example.name for example in EXAMPLES]
