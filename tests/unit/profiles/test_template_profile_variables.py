from pathlib import Path

import pytest

from signoff.errors import InvalidTemplate
from signoff.profiles.template_profile import (
    ENGINE_VARIABLES,
    fill_engine_variables,
    render_template,
)


def test_the_variables_of_the_engine_stay_in_the_prompt_of_a_profile(tmp_path: Path) -> None:
    """A profile has no plan, and never gets one to insert."""
    text = " ".join(f"{{{{{name}}}}}" for name in ENGINE_VARIABLES)
    (tmp_path / "prompt.md").write_text("{{ENTITY}} " + text)

    assert render_template(tmp_path / "prompt.md", {"ENTITY": "User"}) == f"User {text}"


def test_any_other_variable_needs_a_value(tmp_path: Path) -> None:
    """The variables that a template can use are listed, those of the engine too."""
    (tmp_path / "prompt.md").write_text("{{ENTTIY}}")

    with pytest.raises(InvalidTemplate, match="unknown variable 'ENTTIY'") as error:
        render_template("prompt.md", {"ENTITY": "User"}, tmp_path)

    remedy = error.value.problems[0].remedy
    assert remedy.startswith("did you mean ENTITY? ")
    assert remedy.endswith("valid: CODE, ENTITY, FEEDBACK, PLAN, REVIEW, STANDARDS")


def test_the_engine_fills_in_what_is_left(tmp_path: Path) -> None:
    """A value that mentions {{PLAN}} is shown to the model as the user wrote it."""
    (tmp_path / "prompt.md").write_text(
        "{{TASK}}: {{PLAN}}{{#if FEEDBACK}} ({{FEEDBACK}}){{/if}} [{{CODE}}]"
    )
    prompt = render_template(tmp_path / "prompt.md", {"TASK": "print {{PLAN}}"})

    first = fill_engine_variables(prompt, {"PLAN": "{{CODE}}"})
    second = fill_engine_variables(prompt, {"PLAN": "p", "FEEDBACK": "shorter", "OTHER": "x"})

    assert first == "print {{PLAN}}: {{CODE}} []"
    assert second == "print {{PLAN}}: p (shorter) []"
