import pytest

from signoff.core.errors import Problem
from signoff.documents.yaml_text import (
    Document,
    newer_version,
    read_mapping,
    read_yaml,
)
from tests.tables import table


def read(text: str) -> Document:
    problems: list[Problem] = []
    document = read_yaml(text, "file.yaml", problems)
    assert problems == []
    assert document is not None
    return document


def error_message(text: str) -> str:
    problems: list[Problem] = []
    assert read_mapping(text, "file.yaml", problems, "settings") is None
    (problem,) = problems
    return str(problem)


def test_values_come_out_plain() -> None:
    """The parser's own types would fail later checks for strings and numbers."""
    document = read(
        "a: 'x'\nb: 1\nc: 1.5\nd: &yes true\ne: [1_000, 0x10]\nf:\ng: |\n  long\n1: z\n"
    )

    content = document.content
    assert content == {
        "a": "x",
        "b": 1,
        "c": 1.5,
        "d": True,
        "e": [1000, 16],
        "f": None,
        "g": "long\n",
        "1": "z",
    }
    kinds = [type(content[key]) for key in "abcdg"]
    assert kinds == [str, int, float, bool, str]


def test_every_value_knows_its_line() -> None:
    """Users go to the line that an error message names."""
    document = read("a: 1\nb:\n  - c: 2\n\n    D: 3\n  - x\n")

    assert document.at(("a",)) == "file.yaml:1"
    assert document.at(("b", 0, "c")) == "file.yaml:3"
    assert document.at(("b", 0, "d")) == "file.yaml:5"
    assert document.at(("b", 1)) == "file.yaml:6"


def test_a_missing_key_has_the_line_of_its_parent() -> None:
    """A key that does not exist has no line of its own."""
    document = read("a:\n  - b:\n      c: 1\n")

    assert document.line(("a", 0, "b", "nothing")) == 2
    assert document.line(("a", 7)) == 1
    assert document.line(("a", 0, "b", "c", "deeper")) == 3
    assert document.line(("nothing",)) == 1


@table(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", 'file.yaml:2: found duplicate key "a"'),
        ("a:\n\tb: 1\n", "file.yaml:2: found character '\\t' that cannot start any token (indent"),
        ("a: [", "file.yaml:1: "),
        ("a: 1\n---\nb: 2\n", "file.yaml:"),
        ("a: b: c\n", "file.yaml:1: mapping values are not allowed here (put a text that"),
        ("a:\n  - b\n - c\n", "file.yaml:3: expected <block end>, but found '<block "),
        ('a: "b" c\n', "file.yaml:1: expected <block end>, but found '<scalar>' (put the "),
        ("a: @b\n", "file.yaml:1: found character '@' that cannot start any token (put the"),
        ("a: [1\nb: 2\n", "file.yaml:2: expected ',' or ']', but got ':' (a bracket"),
        ("a: 'b\n", "file.yaml:2: found unexpected end of stream (a quote is opened"),
        ("a: \x00", "file.yaml: "),
        ("- a\n", "file.yaml:1: is not a list of `key: value` settings"),
        ("just words\n", "file.yaml:1: is not a list of `key: value` settings"),
        ("# nothing\n", "file.yaml:1: is empty"),
        ("a: *missing\n", "file.yaml:1: found undefined alias"),
        ("a: 2024-99-99\n", "file.yaml: is not YAML: month must be in 1..12"),
        ("a: 1\n? - b: 1\n", "file.yaml: is not YAML: "),
        ("? {a: 1}\n: 2\n", "file.yaml: has a list or a mapping where a key"),
        ("? [a]\n: 2\n", "file.yaml: has a list or a mapping where a key"),
        ("[" * 100_000, "file.yaml:1: is nested more than 50 deep"),
        ("a: " + "[" * 60 + "]" * 60, "file.yaml:1: is nested more than 50 deep"),
    ],
)
def test_a_text_that_cannot_be_parsed_is_one_problem(text: str, message: str) -> None:
    """A traceback would not help the author of the file."""
    assert error_message(text).startswith(message)


def test_aliases_that_expand_without_end_are_refused() -> None:
    """A file of a few lines must not fill the memory."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")

    assert "too many values" in error_message("\n".join(lines))


def test_a_newer_file_is_refused_and_this_version_is_not() -> None:
    """A file for a newer version may mean something else to this one."""
    newer = newer_version(read("a: 1\nversion: 2\n"), 1)

    assert newer is not None
    assert newer.where == "file.yaml:2"
    assert "upgrade signoff" in newer.remedy
    assert newer_version(read("version: 1\n"), 1) is None
    assert newer_version(read("version: soon\n"), 1) is None


@pytest.mark.parametrize(
    ("number", "message"),
    [("1" * 5000, "file.yaml: is not YAML: Exceeds the limit"), ("0x" + "f" * 5000, "4096 bits")],
)
def test_a_number_of_thousands_of_digits_is_a_problem(number: str, message: str) -> None:
    """Python refuses to parse the first and to print the second."""
    assert message in error_message(f"a: 1\nb: {number}\n")
