"""The tests of the documentation find wrong pages."""

from pathlib import Path

import pytest

from tests.acceptance.doc_blocks import Block, anchors, links, missing, sections, typed
from tests.acceptance.doc_runner import DocRunner

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


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE, "utf-8")
    return path


def test_a_page_is_parsed_into_sections_with_blocks(page: Path) -> None:
    """A block that is not found is not tested."""
    _, first, second = sections(page)

    assert [(b.language, b.file, b.not_run) for b in first.blocks] == [
        ("python", "flow.py", ""),
        ("sh", "", "it never ends"),
    ]
    assert second.blocks[0].prints == "1\n"


def test_links_and_headings_are_found_outside_of_code(page: Path) -> None:
    """Dead links must be found, but links inside code blocks do not count."""
    assert list(links(page)) == ["other.md#part"]
    assert anchors(page) == {"title", "first-part", "second-with-code"}


def test_a_session_is_parsed_into_commands_and_expected_output() -> None:
    """A command that is taken for output would never be run."""
    session = "$ cat <<END\n> hello\n> END\nhello\n$ true\n"

    assert list(typed(session)) == [("cat <<END\nhello\nEND", ["hello"]), ("true", [])]


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("language", "text", "problem"),
    [
        ("python", "raise SystemExit(3)\n", "ended with 3"),
        ("sh", "false\ntrue\n", "ended with 1"),
        ("console", "$ echo yes\nno\n", "'no' is not in the output"),
        ("console", "$ (exit 4)\n$ echo $?\n5\n", "'5' is not in the output"),
        ("console", "$ exit\n$ echo\n", "ended early"),
    ],
)
def test_a_block_that_fails_is_reported(
    language: str, text: str, problem: str, tmp_path: Path
) -> None:
    """Otherwise the first user who copies it would find the error."""
    runner = DocRunner(tmp_path)

    assert problem in runner.run(Block(language, text, line=1))


def test_a_block_that_prints_something_else_is_reported(tmp_path: Path) -> None:
    """The output on the page has to be the real output."""
    block = Block("python", "print('yes')\n", line=1, prints="no\n")

    assert "'no' is not in the output" in DocRunner(tmp_path).run(block)


def test_a_block_that_must_not_be_run_is_still_written_to_its_file(tmp_path: Path) -> None:
    """Pages show wrong code on purpose, and later commands use its file."""
    runner = DocRunner(tmp_path)

    problem = runner.run(Block("python", "# wrong.py\n1 / 0\n", 1, not_run="on purpose"))

    assert problem == ""
    assert (runner.folder / "wrong.py").exists()
