import json

import pytest

from signoff.documents.lenient_json import (
    MAX_REPAIRED_CHARACTERS,
    NotJson,
    find_closed_objects,
    find_end,
    find_objects,
    load,
    strip_code_fence,
)
from tests.tables import table

WHOLE = {"overall": "PASS", "issues": [{"finding": 'a "{" in a string'}, {"finding": "}]"}]}


@pytest.mark.parametrize(
    ("slip", "value"),
    [
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ("{'a': True, 'b': None}", {"a": True, "b": None}),
        ('{"a": "he said "no" twice"}', {"a": 'he said "no" twice'}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ("{'a': 'it's', 'b': [{'c': 'd'}]}", {"a": "it's", "b": [{"c": "d"}]}),
        ('{\n// why\n"a": 1,\n}', {"a": 1}),
        ('{"a": "\\u0439\\n\\"é\\"",}', {"a": 'й\n"é"'}),  # not Latin on purpose
    ],
    ids=["commas", "python", "quotes", "newline", "apostrophe", "comment", "escapes"],
)
def test_wrong_punctuation_is_repaired(slip: str, value: object) -> None:
    """Asking the model again because of a comma costs a call."""
    assert load(slip) == value


@table("cut", range(1, len(json.dumps(WHOLE))))
def test_truncated_json_is_refused_wherever_it_was_cut(cut: int) -> None:
    """A repair would make half a list of findings look complete."""
    half = json.dumps(WHOLE)[:cut]

    with pytest.raises(NotJson):
        load(half)


@pytest.mark.parametrize(
    "text",
    [
        '{"overall": "FAIL", "overall": "PASS"}',
        "{'overall': 'FAIL', 'overall': 'PASS'}",
    ],
)
def test_duplicate_keys_are_refused(text: str) -> None:
    """The last value would silently replace the first."""
    with pytest.raises(NotJson):
        load(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x ""y ""z"}',
        '{"a": "да ""нет ""да"}',
        '{"a": : "b": "c"}',
        '{"overall": "PASS", "summary": "a "word", "issues": [{"finding": "bad"}]}',
    ],
)
def test_a_repair_that_loses_text_is_refused(text: str) -> None:
    """The lost text may be the blocking finding."""
    with pytest.raises(NotJson):
        load(text)


@pytest.mark.parametrize("text", ['{"a":' * 5_000, "[" * 5_000 + "]" * 5_000])
def test_deeply_nested_brackets_are_refused(text: str) -> None:
    """They would cause a stack overflow."""
    with pytest.raises(NotJson):
        load(text)


def test_a_long_invalid_text_is_refused_without_repair() -> None:
    """A repair takes minutes for such a text."""
    long = '{"a": "' + "x" * MAX_REPAIRED_CHARACTERS + '",}'

    with pytest.raises(NotJson, match="too long"):
        load(long)


def test_objects_are_found_between_prose_fences_and_templates() -> None:
    """Models explain their answers in prose."""
    text = 'For {name}:\n```json\n{"a": {"b": "}"}}\n```\nand {"c": 1}.'

    found = [text[start:end] for start, end in find_objects(text)]

    assert found == ['{"a": {"b": "}"}}', '{"c": 1}']


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ('{"a": [{"b": {"c": 1}}, {"d": "}', ['{"c": 1}', '{"b": {"c": 1}}']),
        ('{"a": ({"b": 1}], {"c": 2}', ['{"b": 1}', '{"c": 2}']),
        ('{"a": "x', []),
        ("no object", []),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, []),
    ],
)
def test_whole_objects_are_found_in_one_that_never_ends(text: str, closed: list[str]) -> None:
    """What is inside an answer that was cut off can be read all the same."""
    assert [text[start:end] for start, end in find_closed_objects(text)] == closed


def test_mismatched_brackets_are_refused() -> None:
    """The end of such a value is unknown."""
    with pytest.raises(NotJson, match="do not match"):
        find_end('{"a": [1}]', 0)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```json\n[1]\n```", "[1]"),
        ("Here:\n```\n[1]```\nDone.", "[1]"),
        ('```json\n{"a": "```x```"}\n```', '{"a": "```x```"}'),
        ("```python\n[1]\n```", "```python\n[1]\n```"),
        ("```\n[1]\n```\n```\n[2]\n```", "[1]\n```\n```\n[2]"),
        ("```", "```"),
        (" [1] ", "[1]"),
    ],
)
def test_a_single_code_fence_is_removed(text: str, inside: str) -> None:
    """With two fenced answers, neither is chosen."""
    assert strip_code_fence(text) == inside
