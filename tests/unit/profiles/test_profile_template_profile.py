from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signoff.profiles import WorkflowStatus
from signoff.profiles.code_files import find_code_files
from signoff.profiles.profile import FORMS, TemplateProfile, fill_engine_variables
from signoff.profiles.responses import check_review_meta


class NotesProfile(TemplateProfile):
    """Writes notes about a topic."""

    @classmethod
    def get_metadata(cls) -> Mapping[str, Any]:
        return {"name": "notes", "description": "", "context_schema": {}}

    def template_variables(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"TOPIC": context["topic"]}


@pytest.fixture
def profile(tmp_path: Path) -> NotesProfile:
    for phase in ("planning", "generation", "review", "revision"):
        text = f"{phase} of {{{{TOPIC}}}}\n{{{{STANDARDS}}}}\n"
        (tmp_path / f"{phase}-prompt.md").write_text(text, "utf-8")
    NotesProfile.templates = tmp_path
    return NotesProfile()


def test_each_prompt_comes_from_its_template(profile: NotesProfile) -> None:
    """The author of a profile writes four files of text."""
    context = {"topic": "{{PLAN}} and {{TOPIC}}"}
    prompts = [
        profile.generate_planning_prompt(context),
        profile.generate_generation_prompt(context),
        profile.generate_review_prompt(context),
        profile.generate_revision_prompt(context),
    ]

    filled = [fill_engine_variables(prompt, {"STANDARDS": "S", "PLAN": "P"}) for prompt in prompts]

    assert filled == [
        f"{phase} of {{{{PLAN}}}} and {{{{TOPIC}}}}\nS\n"
        for phase in ("planning", "generation", "review", "revision")
    ]


def test_the_files_of_a_response_become_a_write_plan(profile: NotesProfile) -> None:
    """The engine writes them; the profile only names them."""
    reply = "### a.md\n```md\nx\n```\n### revision-issues.md\n```md\nfixed\n```\n"

    for result in (
        profile.process_generation_response(reply),
        profile.process_revision_response(reply),
    ):
        assert result.status is WorkflowStatus.SUCCESS
        assert result.write_plan is not None
        assert [(op.path, op.content) for op in result.write_plan.writes] == [
            ("a.md", "x\n"),
            ("revision-issues.md", "fixed\n"),
        ]


@pytest.mark.parametrize("reply", ["", "no files", "### a.md\n```md\nx\n", "```md\nx\n```"])
def test_a_response_without_readable_files_is_an_error(profile: NotesProfile, reply: str) -> None:
    """Nothing may be written from half a response."""
    result = profile.process_generation_response(reply)

    assert (result.status, result.write_plan) == (WorkflowStatus.ERROR, None)
    assert result.error_message


def example(form: str) -> str:
    """The worked example in a form, without the fence around it."""
    return (FORMS / f"{form}.md").read_text("utf-8").split("~~~\n")[1]


def test_the_example_of_the_files_form_is_read() -> None:
    """A model that follows the example must be understood."""
    assert find_code_files(example("files")) == {"path/to/file.ext": "the complete content\n"}


def test_the_example_of_the_revision_form_is_read() -> None:
    """A model that follows the example must be understood."""
    files = find_code_files(example("revision"))

    assert list(files) == ["revision-issues.md"]
    assert "| 2 | rejected |" in files["revision-issues.md"]


def test_the_example_of_the_review_form_is_a_valid_review() -> None:
    """A model that follows the example must be understood, and its counts must be right."""
    review = example("review")

    meta = check_review_meta(review)

    assert meta.summary == "FAIL | issues=2 (critical=1) | missing_inputs=1"
    assert review.count("### Issue ") == meta.issues_total
    assert review.count("(critical)") == meta.issues_critical
    assert review.partition("## Missing inputs")[2].count("\n- ") == meta.missing_inputs
