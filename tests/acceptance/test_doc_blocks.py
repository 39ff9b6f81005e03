"""The tests of the documentation find wrong pages."""

from pathlib import Path

from tests.acceptance.doc_blocks import Block, anchors, links, sections
from tests.acceptance.doc_runner import DocRunner
from tests.tables import table

PAGE = """\
# Title

## First part

```python
# flow.py
X = 1
```

<!-- not run: it never ends -->
```sh
sleep 999
```

## Second, with `code`

```python
print(1)
```

```text
1
```

See [there](other.md#part) and `[not](this)`.
"""


def test_the_blocks_links_and_headings_of_a_page_are_found(tmp_path: Path) -> None:
    """A block or a link that is not found is not tested; links inside code do not count."""
    page = tmp_path / "page.md"
    page.write_text(PAGE, "utf-8")

    _, first, second = sections(page)

    assert [(b.language, b.file, b.not_run) for b in first.blocks] == [
        ("python", "flow.py", ""),
        ("sh", "", "it never ends"),
    ]
    assert second.blocks[0].prints == "1\n"
    assert list(links(page)) == ["other.md#part"]
    assert anchors(page) == {"title", "first-part", "second-with-code"}


@table(
    ("block", "problem"),
    [
        (Block("python", "raise SystemExit(3)\n", 1), "ended with 3"),
        (Block("sh", "false\ntrue\n", 1), "ended with 1"),
        (Block("console", "$ echo yes\nno\n", 1), "'no' is not in the output"),
        (Block("console", "$ (exit 4)\n$ echo $?\n5\n", 1), "'5' is not in the output"),
        (Block("console", "$ exit\n$ echo\n", 1), "ended early"),
        (Block("python", "print('yes')\n", 1, prints="no\n"), "'no' is not in the output"),
    ],
)
def test_a_block_that_fails_or_prints_something_else_is_reported(
    block: Block, problem: str, tmp_path: Path
) -> None:
    """Otherwise the first user who copies it would find the error."""
    assert problem in DocRunner(tmp_path).run(block)
