"""Every example works as its README says, in a copy of its folder."""

from pathlib import Path

import pytest

from tests.acceptance.doc_blocks import sections
from tests.acceptance.doc_runner import DocRunner
from tests.acceptance.examples import copy_example

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(p.parent for p in (ROOT / "examples").glob("*/README.md"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_does_what_its_readme_says(example: Path, tmp_path: Path) -> None:
    """Users start from the examples."""
    runner = DocRunner(tmp_path)
    copy_example(example, runner.folder)
    blocks = [block for section in sections(example / "README.md") for block in section.blocks]

    problems = [runner.run(block) for block in blocks]

    assert blocks
    assert [problem for problem in problems if problem] == []


def test_every_example_has_a_readme() -> None:
    """The README is the test of the example."""
    folders = [p.name for p in (ROOT / "examples").iterdir() if p.is_dir()]

    assert sorted(folders) == [example.name for example in EXAMPLES]
