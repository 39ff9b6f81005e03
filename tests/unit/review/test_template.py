"""Templates of prompts: what is filled in, and what is reported about a user's own."""

import pytest

from signoff.core.severity import Severity
from signoff.review.template import REQUIRED, built_in, fill, placeholders_of, problems


def test_values_are_filled_in_and_empty_ones_leave_no_gap() -> None:
    """Gaps and stray headings would look as if something were missing."""
    template = "{{! note }}\nA {{a}}.\n\n{{b}}\n\n{{#b}}\n# B\n\n{{b}}\n\n{{/b}}\nEnd."

    assert fill(template, {"a": "x", "b": ""}) == "A x.\n\nEnd.\n"
    assert fill(template, {"a": "x", "b": "y"}) == "A x.\n\ny\n\n# B\n\ny\n\nEnd.\n"


def test_sections_depend_on_a_value_and_may_be_nested_or_on_one_line() -> None:
    """Otherwise each role would need one template for each situation."""
    template = "{{#a}}\nA{{^b}}, no B{{/b}}.\n{{/a}}\n{{^a}}\nnone\n{{/a}}\n"

    assert fill(template, {"a": "1", "b": ""}) == "A, no B.\n"
    assert fill(template, {"a": "1", "b": "1"}) == "A.\n"
    assert fill(template, {"a": "", "b": ""}) == "none\n"


def test_a_value_is_never_read_as_a_template() -> None:
    """An artifact that contains placeholders must not pull other material into the prompt."""
    hostile = "{{secret}} {{#secret}}\n{{/a}} {{! gone }}\n\n\n\nend"

    filled = fill("{{a}}\n{{secret}}", {"a": hostile, "secret": "s"})

    assert filled == f"{hostile}\ns\n"


@pytest.mark.parametrize("name", REQUIRED)
def test_every_built_in_template_is_valid_and_says_its_version(name: str) -> None:
    """It is the start for a user's own template, which is checked."""
    text = built_in(name)

    assert list(problems(name, text)) == []
    assert text.startswith("{{! signoff prompts, version ")


def test_the_severity_scale_has_a_line_for_each_severity() -> None:
    """A severity without a description would be a matter of taste."""
    lines = [line for line in built_in("severities").splitlines() if line.startswith("- ")]

    assert [line[2:].partition(":")[0] for line in lines] == list(Severity)
    assert all("Example: " in line for line in lines)


@pytest.mark.parametrize(
    ("text", "line", "expected", "remedy"),
    [
        ("{{artefact}}", 3, "unknown placeholder {{artefact}}", "did you mean {{artifact}}? valid"),
        ("{{ artifact }}", 3, "unknown placeholder {{ artifact }}", "did you mean {{artifact}}?"),
        ("{{#Known}}{{/Known}}", 3, "unknown placeholder {{Known}}", "did you mean {{known}}?"),
        ("{{zzz}}", 3, "unknown placeholder {{zzz}}", "valid: artifact"),
        ("{{#goal}}", 3, "the section {{#goal}} is not closed", "end it with {{/goal}}"),
        ("{{/goal}}", 3, "{{/goal}} closes no section", "begin it with {{#goal}}"),
        ("{{#goal}}\n{{#known}}{{/goal}}{{/known}}", 4, "{{/goal}} closes no section", "begin"),
    ],
)
def test_each_mistake_in_a_template_is_reported_with_its_line(
    text: str, line: int, expected: str, remedy: str
) -> None:
    """A critic that does not see the artifact would be paid for nothing."""
    essentials = "{{! two\nlines }}{{artifact}} {{critiques}}"

    (found,) = problems("judge", f"{essentials}\n{text}\n")

    assert (found.what, found.line) == (expected, line)
    assert found.remedy.startswith(remedy)


@pytest.mark.parametrize("text", ["{{critiques}}", "{{#artifact}}yes{{/artifact}} {{critiques}}"])
def test_a_template_without_an_essential_value_is_reported(text: str) -> None:
    """A value that is only tested is not printed."""
    (found,) = problems("judge", text)

    assert (found.what, found.line) == ("{{artifact}} is missing", None)
    assert found.remedy


def test_both_templates_of_a_role_may_use_the_same_placeholders() -> None:
    """A user may want the severity scale in the prompt, or the constraint in the role."""
    assert placeholders_of("critic") == placeholders_of("critic_system")
    assert {"artifact", "severities"} <= placeholders_of("critic")
    assert placeholders_of("severities") == set()
