import contextlib
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.profiles.code_files import (
    MOST_BLOCKS,
    fenced,
    find_code_files,
    format_code_files,
)
from tests.tables import table

CODE = "```python\nx = 1\n```\n"


@table(
    "line",
    [
        "### src/a.py",
        "# `src/a.py`",
        "### 1. src/a.py",
        "2) `src/a.py`",
        "- **src/a.py**",
        "**`src/a.py`**",
        "`src/a.py`",
        "`src/a.py`:",
        "src/a.py",
        "src/a.py:",
        "File: src/a.py",
        "file 3: `src/a.py`",
        "**File:** `src/a.py`",
        "#### Filename: src/a.py",
        "### `src/a.py` (new)",
        "### src/a.py (unchanged)",
        "### `src/a.py` \N{EM DASH} the model",
        "src\\a.py",
    ],
)
def test_a_line_before_a_block_names_its_file(line: str) -> None:
    """Models vary the markup of a file name, and each variant means the same."""
    for gap in ("\n", "\n\n"):
        assert find_code_files(f"Here it is.\n\n{line}{gap}{CODE}") == {"src/a.py": "x = 1\n"}


@pytest.mark.parametrize(
    "info",
    [
        "python src/a.py",
        "python:src/a.py",
        "src/a.py",
        'python title="src/a.py"',
        "python filename='src/a.py'",
        "python {1,3} file=src/a.py",
    ],
)
def test_an_info_string_names_a_file(info: str) -> None:
    """Some models put the path behind the language."""
    assert find_code_files(f"Some words\n```{info}\nx = 1\n```") == {"src/a.py": "x = 1\n"}


@pytest.mark.parametrize("name", ["Makefile", ".gitignore", "File: my notes.txt", "__init__.py"])
def test_unusual_names_are_names(name: str) -> None:
    """A project has files without a suffix, with a leading dot, and with spaces."""
    (path,) = find_code_files(f"{name}\n```text\nx\n```")

    assert path == name.removeprefix("File: ")


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../../x.py", "C:/x.py", "a//b.py", "//host/share/x", "~/.ssh/id"]
)
def test_a_hostile_path_is_found_like_any_other(path: str) -> None:
    """It has to reach the check that refuses it; ignoring it would drop a file silently."""
    assert list(find_code_files(f"### {path}\n{CODE}")) == [path]


def test_files_keep_their_order_and_content() -> None:
    """A file is written exactly as the model wrote it, with empty lines and indentation."""
    reply = (
        "### b.py\n```python\n\n    x = 1\n\n```\nand\n### a.py\n~~~python\n# ```\n~~~\n"
        "### pkg/__init__.py\n```python\n```\n"
    )

    assert list(find_code_files(reply).items()) == [
        ("b.py", "\n    x = 1\n\n"),
        ("a.py", "# ```\n"),
        ("pkg/__init__.py", ""),
    ]


def test_a_heading_names_the_block_below_its_description() -> None:
    """Models like to say a sentence about a file before they show it."""
    reply = f"### a.py\n\nThe model.\n\nTwo paragraphs.\n\n{CODE}"

    assert find_code_files(reply) == {"a.py": "x = 1\n"}


def test_a_longer_fence_encloses_shorter_ones() -> None:
    """A README contains fenced blocks of its own."""
    readme = "# Title\n```sh\nmake\n```\n~~~~\nx\n~~~~\n"

    assert find_code_files(f"### README.md\n````markdown\n{readme}````\n") == {"README.md": readme}


def test_a_fence_that_is_indented_further_belongs_to_the_content() -> None:
    """A docstring may contain an example in fences."""
    content = 'def f():\n    """F.\n\n    ```python\n    f()\n    ```\n    """\n'

    assert find_code_files(f"### a.py\n```python\n{content}```\n") == {"a.py": content}


def test_a_block_in_a_list_loses_the_indentation_of_its_fence() -> None:
    """The code of a list item is indented like the item."""
    reply = "1. `a.py`\n\n   ```python\n   def f():\n       pass\n   ```\n"

    assert find_code_files(reply) == {"a.py": "def f():\n    pass\n"}


def test_line_endings_of_another_system_are_line_endings() -> None:
    """A reply that was pasted on Windows has two characters per line end."""
    assert find_code_files(f"### a.py\n{CODE}".replace("\n", "\r\n")) == {"a.py": "x = 1\n"}


def test_commands_between_files_are_no_files() -> None:
    """Models add how to run the code."""
    reply = f"Install it:\n```sh\npip install x\n```\n### a.py\nRun:\n```console\n$ x\n```\n{CODE}"

    assert find_code_files(reply) == {"a.py": "x = 1\n"}


def test_a_reply_inside_one_block_is_read() -> None:
    """Models that are asked for a markdown file enclose the whole answer."""
    assert find_code_files(f"````markdown\n### a.py\n{CODE}````\n") == {"a.py": "x = 1\n"}


@table(
    ("reply", "problem"),
    [
        ("", "contains no file"),
        ("I cannot do that.", "contains no file"),
        ("Run `a.py` and see.", "contains no file"),
        ("```sh\nls\n```", "contains no file"),
        ("### a.py\n```python\nx = 1\n", "line 2: .*never closed"),
        ("### a.py\n````python\nx = 1\n```\n", "line 2: .*never closed"),
        ("### a.py\n```python\nx = 1\n~~~\n", "line 2: .*never closed"),
        ("### a.py\n```", "line 2: .*never closed"),
        ("### a.md\n```md\nx\n```python\ny\n```\nz\n```\n", "line 4: .*block of line 2"),
        ("### a.md\n```md\nx\n```\ny\n```\nz\n```\n", "line 6: .*names no file"),
        (f"### a.py\n{CODE}### a.py\n{CODE}", "line 6: .*'a.py' appears twice"),
        (f"### s/a.py\n{CODE}### s\\a.py\n{CODE}", "'s/a.py' appears twice"),
        (f"### a.py\n{CODE}{CODE}", "line 5: .*names no file"),
        (f"### Overview\n{CODE}", "line 2: .*names no file"),
        (f"Look at `a.py`, it is short:\n{CODE}", "line 2: .*names no file"),
        (f"File: see below\n{CODE}", "line 2: .*names no file"),
        ("```markdown\n### a.py\n```python\nx\n```\n```\n", "line 3: .*block of line 1"),
        (f"````md\n### a.py\n{CODE}{CODE}````\n", "line 6: .*names no file"),
        ("### a.py\n" + "```sh\n```\n" * MOST_BLOCKS, "or more fenced blocks"),
        (f"### {'a/' * 300}a.py\n{CODE}", "names no file"),
    ],
)
def test_an_unclear_reply_is_refused_with_its_line(reply: str, problem: str) -> None:
    """A file that is lost or cut short is worse than a question."""
    with pytest.raises(ValueError, match=problem) as error:
        find_code_files(reply)

    assert len(str(error.value)) < 300


PIECES = st.sampled_from(
    [
        "```",
        "````",
        "~~~",
        "```python",
        "### a.py",
        "b.md",
        "    ```",
        "x",
        "",
        "`a`",
        "\t```",
        "\r",
    ]
)


@given(st.dictionaries(st.sampled_from(["a.py", "d/b.md", "Makefile"]), st.lists(PIECES)))
def test_files_that_are_written_are_found_again(lines: dict[str, list[str]]) -> None:
    """Reviewers and revisers get the code in the form in which they have to return it."""
    files = {path: "".join(f"{line}\n" for line in each) for path, each in lines.items()}
    text = format_code_files(files)

    if files:
        expected = {path: content.replace("\r\n", "\n") for path, content in files.items()}
        assert find_code_files(text) == expected
    else:
        assert text == ""


@given(st.lists(PIECES).map("\n".join))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    """No arrangement of fences may end in another error, or in half a file."""
    try:
        files = find_code_files(reply)
    except ValueError:
        return

    assert all(content in reply.replace("\r\n", "\n") + "\n" for content in files.values())


@pytest.mark.parametrize(
    "long_text",
    [
        lambda: "### a.py\n```python\n" + "x = 1\n" * 800_000 + "```",
        lambda: "```\n" * 1_250_000,
        lambda: "```sh\n```\n" * 500_000,
        lambda: "`" * 5_000_000,
        lambda: " " * 5_000_000 + "```",
        lambda: "### a.py\n````md\n" + "```x\n" * 1_000_000,
        lambda: "### a.py\n```md\n" + "~~~\n    ```\n" * 400_000 + "```",
        lambda: "#" * 5_000_000,
        lambda: "# x\n" * 1_250_000 + CODE,
        lambda: "```" + "a=" * 2_500_000,
        lambda: "\n".join(f"### f{n}.py\n{CODE}" for n in range(200_000)),
    ],
    ids=range(11),
)
def test_five_megabytes_are_read_quickly(long_text: Callable[[], str]) -> None:
    """A hostile reply must not keep a session busy.

    Each takes a fraction of a second; anything quadratic would take hours.
    """
    text = long_text()
    start = time.process_time()

    with contextlib.suppress(ValueError):
        find_code_files(text)

    assert time.process_time() - start < 5


def test_no_text_can_close_the_block_around_it() -> None:
    """A table definition or a file may contain fences, and must not end its own block."""
    assert fenced("a\n```\n`````\n", "sql") == "``````sql\na\n```\n`````\n``````\n"
    assert fenced("") == "```\n```\n"
