"""Every example does what it says, from a copy of its folder."""

from pathlib import Path

import pytest

from tests.acceptance.doc_blocks import sections
from tests.acceptance.doc_runner import Reader
from tests.acceptance.examples import copy_example

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(p.parent for p in (ROOT / "examples").glob("*/README.md"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_does_what_its_readme_says(example: Path, tmp_path: Path) -> None:
    """Examples are copied more often than anything else is read."""
    reader = Reader(tmp_path)
    copy_example(example, reader.folder)
    blocks = [block for section in sections(example / "README.md") for block in section.blocks]

    problems = [reader.tries(block) for block in blocks]

    assert blocks
    assert [problem for problem in problems if problem] == []


def test_what_trying_an_example_leaves_behind_is_not_copied(tmp_path: Path) -> None:
    """Somebody who has tried an example in its own folder can still run the tests."""
    example, copy = tmp_path / "example", tmp_path / "copy"
    (example / ".signoff").mkdir(parents=True)
    for name, text in {
        "a.py": "",
        "book.db": "",
        "book.db-wal": "",
        ".gitignore": "/book.db*\n",
    }.items():
        (example / name).write_text(text, "utf-8")

    copy_example(example, copy)

    assert sorted(path.name for path in copy.iterdir()) == [".gitignore", "a.py"]


def test_every_example_is_explained() -> None:
    """A folder without a README would be no test, and no example either."""
    folders = [p.name for p in (ROOT / "examples").iterdir() if any(p.rglob("*.py"))]

    assert sorted(folders) == [example.name for example in EXAMPLES]
