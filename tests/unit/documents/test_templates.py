from itertools import product
from pathlib import Path
from typing import Any

import pytest

from signoff.core.errors import InvalidTemplate
from signoff.documents.templates import (
    MOST_INCLUDES,
    fill,
    render_template,
)
from tests.tables import table
from tests.template_text import render_text

ENGINE = ("STANDARDS", "PLAN", "CODE", "REVIEW", "FEEDBACK")


def write(folder: Path, **texts: str) -> None:
    """Writes templates; `a__b` is the file `a/b.md`."""
    for name, text in texts.items():
        file = folder.joinpath(*name.split("__")).with_suffix(".md")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def problems(error: pytest.ExceptionInfo[InvalidTemplate]) -> list[str]:
    return [f"{each.where.rpartition('/')[2]}: {each.what}" for each in error.value.problems]


@pytest.mark.parametrize(
    ("template", "variables", "text"),
    [
        ("Create {{ENTITY}} in {{DIR}}.", {"ENTITY": "User", "DIR": "app"}, "Create User in app."),
        ("{{A}}{{A}}", {"A": "x"}, "xx"),
        ("{{ A }}", {"A": "x"}, "x"),
        ("[{{A}}]", {"A": None}, "[]"),
        ("{{COUNT}} {{FLAG}}", {"COUNT": 3, "FLAG": True}, "3 True"),
        ("{{a}} {{A}}", {"a": "lower", "A": "upper"}, "lower upper"),
        ("a {{=A}} b", {"A": "x"}, "a {{A}} b"),
        ("{{! for {A} }}\na{{! note }} b", {}, "{{! for {A} }}\na b"),
        ("{{! note }}\na", {}, "a"),
        ("{{=anything: at all}}", {}, "{{anything: at all}}"),
        ("a = {{1, 2}, {3}}; {{}} {{ }} { {A} }", {}, "a = {{1, 2}, {3}}; {{}} {{ }} { {A} }"),
        ('{"name": {{{A}}}}', {"A": "x"}, '{"name": {x}}'),
        ("", {}, ""),
    ],
)  # fmt: skip
def test_variables_are_replaced_by_their_values(
    template: str, variables: dict[str, Any], text: str
) -> None:
    """Everything else, braces of code included, is part of the prompt."""
    assert render_text(template, variables) == text


@pytest.mark.parametrize("value", ["yes", "0", True, 1, ["x"]])
def test_a_block_is_shown_if_its_variable_has_a_value(value: Any) -> None:
    """A prompt has no headings without content."""
    template = "{{#if A}}with {{A}}{{/if}}{{#unless A}}without{{/unless}}"

    assert render_text(template, {"A": value}) == f"with {value}"


@pytest.mark.parametrize("value", ["", "  \n", None, False, 0, []])
def test_a_block_is_hidden_if_its_variable_is_empty(value: Any) -> None:
    """Blank text is no content either."""
    template = "{{#if A}}with {{A}}{{/if}}{{#unless A}}without{{/unless}}"

    assert render_text(template, {"A": value}) == "without"


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [(1, 1, "<a b a>"), (1, 0, "<a  a>"), (0, 1, "<>"), (0, 0, "<>")],
)
def test_blocks_can_be_nested(a: int, b: int, text: str) -> None:
    """Even two of the same kind: each end belongs to the nearest beginning."""
    template = "<{{#if A}}a {{#if B}}b{{/if}} a{{/if}}>"

    assert render_text(template, {"A": a, "B": b}) == text


def test_blocks_can_be_nested_very_deep() -> None:
    """A generated template must not exhaust the stack."""
    template = "{{#if A}}" * 5000 + "x" + "{{/if}}" * 5000

    assert render_text(template, {"A": 1}) == "x"
    assert render_text(template, {"A": 0}) == ""


def test_a_condition_on_a_line_of_its_own_takes_the_line_with_it() -> None:
    """Otherwise prompts are full of empty lines."""
    template = (
        "one\n  {{#if A}}  \ntwo\n{{/if}}\r\nthree {{#if A}}four{{/if}}\n"
        "{{#unless A}}\nx\n{{/unless}}"
    )

    assert render_text(template, {"A": 1}) == "one\ntwo\nthree four\n"
    assert render_text(template, {"A": 0}) == "one\nthree \nx\n"


def test_a_value_is_never_rendered() -> None:
    """A value may quote a template, or come from someone who knows how they work."""
    value = "{{B}} {{#if B}}x{{/if}} {{include: secret.md}} {{/if}} {{=B}} {{B"

    assert render_text("{{A}}", {"A": value, "B": "wrong"}) == value
    assert render_text("{{A}}B}}", {"A": "{{", "B": "wrong"}) == "{{B}}"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("a\n{{NAME}}", "t:2: unknown variable 'NAME'"),
        ("{{#if NAME}}x{{/if}}", "t:1: unknown variable 'NAME'"),
        ("{{#if NO}}{{NAME}}{{/if}}", "t:1: unknown variable 'NAME'"),
        ("{{known}}", "t:1: unknown variable 'known'"),
        ("{{#if KNOWN}}", "t:1: {{#if KNOWN}} is not closed"),
        ("\n\n{{/if}}", "t:3: {{/if}} closes nothing"),
        ("{{#if KNOWN}}{{/unless}}", "t:1: {{/unless}} is in the wrong place"),
        ("{{user.name}}", "t:1: unknown tag {{user.name}}"),
        ("{{#if}}", "t:1: unknown tag {{#if}}"),
        ("{{#iff KNOWN}}", "t:1: unknown tag {{#iff KNOWN}}"),
        ("{{#if A B}}", "t:1: unknown tag {{#if A B}}"),
        ("{{/KNOWN}}", "t:1: unknown tag {{/KNOWN}}"),
        ("{{^KNOWN}}", "t:1: unknown tag {{^KNOWN}}"),
        ("{{include header.md}}", "t:1: unknown tag {{include header.md}}"),
        ("{{else}}", "t:1: unknown variable 'else'"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line(template: str, expected: str) -> None:
    """A typo must not end up in a prompt as text."""
    with pytest.raises(InvalidTemplate) as error:
        render_text(template, {"KNOWN": "x", "NO": ""})

    assert problems(error) == [expected]


def test_all_mistakes_are_reported_together_with_what_is_valid(tmp_path: Path) -> None:
    """Authors fix a template in one go, those of the files that it includes as well."""
    write(
        tmp_path, main="{{X}}\n{{include: part.md}}\n{{include: gone.md}}\n", part="\n{{Y}}{{/if}}"
    )

    with pytest.raises(InvalidTemplate) as error:
        render_template(tmp_path / "main.md", {"B": 1, "A": 2})

    assert problems(error) == [
        "part.md:2: {{/if}} closes nothing",
        "gone.md: does not exist",
        "main.md:1: unknown variable 'X'",
        "part.md:2: unknown variable 'Y'",
    ]
    assert "main.md:3: cannot include" in error.value.problems[1].where
    assert error.value.problems[2].remedy == "valid: A, B"


def test_includes_start_at_the_including_file(tmp_path: Path) -> None:
    """Templates in folders can be moved together."""
    write(
        tmp_path,
        main="{{include: parts/a.md}}",
        parts__a="a {{include: b.md}} {{include: ../c.md}}",
        parts__b="b {{X}}\n",
        c="c",
    )

    assert render_template(tmp_path / "main.md", {"X": 1}) == "a b 1 c"


def test_includes_start_at_the_root_if_there_is_one(tmp_path: Path) -> None:
    """Shared parts are then named the same everywhere."""
    write(tmp_path, plan__main="{{include: shared/a.md}}", shared__a="{{include: shared/b.md}}")
    write(tmp_path, shared__b="b")

    assert render_template("plan/main.md", {}, tmp_path) == "b"
    assert render_template(tmp_path / "plan/main.md", {}, str(tmp_path)) == "b"


def test_an_included_text_ends_where_the_line_of_its_tag_ends(tmp_path: Path) -> None:
    """A file ends with a line break; one that is included must not add an empty line."""
    write(
        tmp_path,
        main="one\n  {{include: a.md}}\nthree [{{include: a.md}}]\n{{include: e.md}}\nfour\n",
    )
    write(tmp_path, a="two\n", e="")

    assert render_template(tmp_path / "main.md", {}) == "one\ntwo\nthree [two]\nfour\n"


@pytest.mark.parametrize(
    ("last", "cycle"),
    [
        ("main.md", "main.md -> a.md -> b.md -> main.md"),
        ("./a.md", "a.md -> b.md -> a.md"),
        ("b.md", "b.md -> b.md"),
    ],
)
def test_a_cycle_is_named(tmp_path: Path, last: str, cycle: str) -> None:
    """Without this, rendering would never end; a condition does not change that."""
    write(tmp_path, main="{{include: a.md}}", a="{{#if NO}}{{include: b.md}}{{/if}}")
    write(tmp_path, b=f"{{{{include: {last}}}}}")

    with pytest.raises(InvalidTemplate) as error:
        render_template(tmp_path / "main.md", {"NO": ""})

    assert problems(error) == [f"b.md:1: cannot include {last!r}: it includes itself: {cycle}"]


@table(
    ("path", "rooted"),
    product(
        [
            "../secret.md",
            "../../templates/../secret.md",
            "parts/../../secret.md",
            "link.md",
            "folder/secret.md",
            "/etc/passwd",
            "C:/secret.md",
            "\\\\host\\secret.md",
            "",
            "a\0b",
            "loop.md",
        ],
        [False, True],
    ),
)
def test_nothing_outside_the_root_is_included(tmp_path: Path, path: str, rooted: bool) -> None:
    """A template is not always written by the user of the machine."""
    root = tmp_path / "templates"
    write(
        tmp_path,
        secret="password",
        templates__main=f"{{{{include: {path}}}}}",
        templates__parts__a="",
    )
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    (root / "folder").symlink_to(tmp_path)
    (root / "loop.md").symlink_to("loop.md")

    with pytest.raises(InvalidTemplate) as error:
        render_template(root / "main.md", {}, root if rooted else None)

    assert len(error.value.problems) == 1


def test_includes_that_multiply_are_refused(tmp_path: Path) -> None:
    """Twenty small files could otherwise make a text of gigabytes."""
    for number in range(30):
        text = f"{{{{include: t{number + 1}.md}}}}" * 2
        write(tmp_path, **{f"t{number}": text})
    write(tmp_path, t30="x")

    with pytest.raises(InvalidTemplate, match=f"more than {MOST_INCLUDES} includes"):
        render_template(tmp_path / "t0.md", {})


def test_a_chain_of_includes_is_bounded(tmp_path: Path) -> None:
    """Deep chains would exhaust the stack."""
    for number in range(200):
        write(tmp_path, **{f"t{number}": f"{{{{include: t{number + 1}.md}}}}"})

    with pytest.raises(InvalidTemplate, match="levels"):
        render_template(tmp_path / "t0.md", {})


def test_variables_that_are_kept_stay_until_they_are_filled_in(tmp_path: Path) -> None:
    """The engine knows the plan only later."""
    write(
        tmp_path,
        main="{{NAME}}\n{{STANDARDS}}\n{{#if FEEDBACK}}\n## Feedback\n{{FEEDBACK}}\n{{/if}}\nend\n",
    )

    kept = render_template(tmp_path / "main.md", {"NAME": "n"}, keep=ENGINE)

    assert "{{STANDARDS}}" in kept
    assert fill(kept, {"STANDARDS": "s", "FEEDBACK": "f"}) == "n\ns\n## Feedback\nf\nend\n"
    assert fill(kept, {"STANDARDS": "s", "FEEDBACK": ""}) == "n\ns\nend\n"


@pytest.mark.parametrize(
    "part", ["{{", "{{a ", "{{=", "{{#if A}}", "{{/if}}", "{{#if A}}{{/if}}", "{ "]
)
def test_filling_a_long_text_takes_one_pass(part: str) -> None:
    """Responses are part of prompts, and may have 5 MB; a hostile one must not stop the session."""
    text = part * (300_000 // len(part))

    filled = fill(text, {"A": "x"})

    assert len(filled) <= len(text)


def test_filling_a_plain_text_changes_nothing_but_its_variables() -> None:
    """A prompt need not come from a template, and code is full of braces."""
    text = "{{other}} {{=A}} {{/if}} {{#if A}} {{#unless B}}{{/if}} {{include: x}} {{}} {{A"

    assert fill(f"{text} {{{{A}}}}", {"A": "{{A}} {{other}}"}) == f"{text} {{{{A}}}} {{{{other}}}}"


def test_what_is_joined_to_an_open_prompt_is_no_template() -> None:
    """An author may add a user's words to a prompt before the plan is known."""
    prompt = "{{PLAN}} " + render_text("{{A}}: {{PLAN}}", {"A": "{{PLAN}}"}, ENGINE) + " {{CODE}}"

    assert prompt == "{{PLAN}} {{PLAN}}: {{PLAN}} {{CODE}}"
    assert fill(prompt, {"PLAN": "{{CODE}}", "CODE": "x"}) == (
        "{{PLAN}} {{PLAN}}: {{CODE}} {{CODE}}"
    )
