import json

import pytest

from signoff.agents.lenient_json import (
    MAX_REPAIRED_CHARACTERS,
    NotJson,
    find_end,
    find_objects,
    load,
    strip_code_fence,
)

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
def test_a_slip_of_punctuation_is_repaired(slip: str, value: object) -> None:
    """Asking a model again for a comma costs a call."""
    assert load(slip) == value


@pytest.mark.parametrize("cut", range(1, len(json.dumps(WHOLE))))
def test_what_was_cut_off_is_refused_wherever_it_was_cut(cut: int) -> None:
    """Also behind a bracket: half a list of findings looks complete to a repair."""
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
def test_what_is_said_twice_is_refused(text: str) -> None:
    """The last one would win, and the first would be lost silently."""
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
def test_a_repair_that_would_lose_anything_is_refused(text: str) -> None:
    """What it leaves out, or takes for part of a text, may be the finding that blocks."""
    with pytest.raises(NotJson):
        load(text)


@pytest.mark.parametrize("text", ['{"a":' * 5_000, "[" * 5_000 + "]" * 5_000])
def test_brackets_without_end_are_refused(text: str) -> None:
    """They would exhaust the stack."""
    with pytest.raises(NotJson):
        load(text)


def test_a_long_text_with_a_slip_is_refused_and_not_repaired_for_minutes() -> None:
    """A hostile reply must not hold up a run."""
    long = '{"a": "' + "x" * MAX_REPAIRED_CHARACTERS + '",}'

    with pytest.raises(NotJson, match="too long"):
        load(long)


def test_objects_are_found_between_prose_fences_and_templates() -> None:
    """Models explain themselves."""
    text = 'For {name}:\n```json\n{"a": {"b": "}"}}\n```\nand {"c": 1}.'

    assert list(find_objects(text)) == ['{"a": {"b": "}"}}', '{"c": 1}']


def test_brackets_that_do_not_match_are_refused() -> None:
    """Where such a value ends is anybody's guess."""
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
def test_one_fence_around_an_answer_is_taken_off(text: str, inside: str) -> None:
    """Of two answers none is chosen: what is left between the outer fences is no JSON."""
    assert strip_code_fence(text) == inside
