"""The tests of the documentation find wrong pages."""

from pathlib import Path

from tests.acceptance.doc_blocks import Block, anchors, links, missing, sections, typed
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


def test_a_session_is_parsed_into_commands_and_expected_output() -> None:
    """A command that is taken for output would never be run."""
    session = "$ cat <<END\n> hello\n> END\nhello\n$ true\n"

    assert list(typed(session)) == [("cat <<END\nhello\nEND", ["hello"]), ("true", [])]


@table(
    ("seen", "lost"),
    [
        (["one", "three"], None),
        (["o...e", "..."], None),
        (["three", "one"], "one"),
        (["on"], "on"),
        (["four"], "four"),
    ],
)
def test_a_line_that_is_missing_or_out_of_order_is_reported(
    seen: list[str], lost: str | None
) -> None:
    """Otherwise a page could show anything."""
    assert missing(seen, "one\ntwo\nthree\n") == lost


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


def test_a_block_that_must_not_be_run_is_still_written_to_its_file(tmp_path: Path) -> None:
    """Pages show wrong code on purpose, and later commands use its file."""
    runner = DocRunner(tmp_path)

    problem = runner.run(Block("python", "# wrong.py\n1 / 0\n", 1, not_run="on purpose"))

    assert problem == ""
    assert (runner.folder / "wrong.py").exists()
