"""The tests of the documentation notice what is false."""

from pathlib import Path

import pytest

from tests.acceptance.doc_blocks import Block, anchors, links, missing, sections, typed
from tests.acceptance.doc_runner import Reader

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


def test_a_page_is_read_as_sections_with_blocks(page: Path) -> None:
    """A block that is not found is not tried."""
    _, first, second = sections(page)

    assert [(b.language, b.file, b.not_run) for b in first.blocks] == [
        ("python", "flow.py", ""),
        ("sh", "", "it never ends"),
    ]
    assert second.blocks[0].prints == "1\n"


def test_links_and_headings_are_found_and_code_is_left_alone(page: Path) -> None:
    """A dead link has to be seen, and an example of one is none."""
    assert list(links(page)) == ["other.md#part"]
    assert anchors(page) == {"title", "first-part", "second-with-code"}


def test_a_session_is_read_as_commands_and_what_is_seen() -> None:
    """A command taken for output would never be typed."""
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
def test_a_line_that_is_not_there_in_its_order_is_missed(seen: list[str], lost: str | None) -> None:
    """Otherwise a page could show anything."""
    assert missing(seen, "one\ntwo\nthree\n") == lost


@pytest.mark.parametrize(
    ("language", "text", "problem"),
    [
        ("python", "raise SystemExit(3)\n", "ended with 3"),
        ("sh", "false\ntrue\n", "ended with 1"),
        ("console", "$ echo yes\nno\n", "'no' is not seen"),
        ("console", "$ (exit 4)\n$ echo $?\n5\n", "'5' is not seen"),
        ("console", "$ exit\n$ echo\n", "ended early"),
    ],
)
def test_a_block_that_does_not_do_what_it_says_is_found_out(
    language: str, text: str, problem: str, tmp_path: Path
) -> None:
    """A reader who copies it would find out instead."""
    reader = Reader(tmp_path)

    assert problem in reader.tries(Block(language, text, line=1))


def test_a_block_that_prints_something_else_is_found_out(tmp_path: Path) -> None:
    """What a page says is printed has to be printed."""
    block = Block("python", "print('yes')\n", line=1, prints="no\n")

    assert "'no' is not printed" in Reader(tmp_path).tries(block)


def test_a_block_that_must_not_be_run_only_becomes_its_file(tmp_path: Path) -> None:
    """Wrong code is shown on purpose, and read by the session that follows it."""
    reader = Reader(tmp_path)

    problem = reader.tries(Block("python", "# wrong.py\n1 / 0\n", 1, not_run="on purpose"))

    assert problem == ""
    assert (reader.folder / "wrong.py").exists()
