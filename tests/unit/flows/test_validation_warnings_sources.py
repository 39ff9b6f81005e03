"""Tests of warnings about sources before a run starts."""

from dataclasses import replace
from pathlib import Path

import pytest

from signoff.flows.sections import Goal
from signoff.flows.validation import source_problems, source_warnings
from signoff.review.constraint import SourceBlock
from tests.unit.flows.harness import constraint, flow


def test_unreadable_sources_are_reported_before_anything_is_paid_for(tmp_path: Path) -> None:
    """A misspelled path would otherwise be noticed in the artifact, if at all."""
    (tmp_path / "there.md").write_text("Facts.")
    block = SourceBlock(files=("there.md", "gone.md", "/etc/passwd"), globs=("*.txt",))
    the_flow = replace(flow(root=tmp_path), goal=Goal(goal="Write.", source=block))

    assert list(source_problems(the_flow)) == [
        "sources of the goal: /etc/passwd: is outside the project",
        "sources of the goal: gone.md: no such file",
    ]
    assert list(source_warnings(the_flow)) == ["sources of the goal: *.txt: matches no file"]


@pytest.mark.parametrize(
    "block",
    [
        SourceBlock(files=("{{project_rot}}/facts.md",)),
        SourceBlock(globs=("{{project_rot}}/facts.md",)),
        SourceBlock(scripts=("{{project_rot}}/facts.md",)),
    ],
)
def test_an_unknown_variable_is_a_problem_wherever_it_appears(
    tmp_path: Path, block: SourceBlock
) -> None:
    """The critic would get other material than the author of the constraint expects."""
    the_flow = flow(constraints=[constraint("clear", source=block)], root=tmp_path)

    (problem,) = source_problems(the_flow)

    assert "sources of clear: {{project_rot}}/facts.md: unknown variable 'project_rot'" in problem
    assert "project_root" in problem


def test_a_path_in_the_run_directory_is_not_checked_before_the_run(tmp_path: Path) -> None:
    """Users who see wrong warnings stop reading them."""
    block = SourceBlock(files=("{{run_dir}}/notes.md",))
    the_flow = flow(constraints=[constraint("clear", source=block)], root=tmp_path)

    assert list(source_warnings(the_flow)) == []
    assert list(source_problems(the_flow)) == []


def test_scripts_that_will_not_run_are_listed_with_the_option_that_allows_them(
    tmp_path: Path,
) -> None:
    """The author of a script expects it to run; silence would cost an afternoon."""
    one = constraint("clear", source=SourceBlock(scripts=("echo facts",)), script="tools/check.sh")

    refused = list(source_warnings(flow(constraints=[one], root=tmp_path)))
    allowed = list(source_warnings(flow(constraints=[one], root=tmp_path, allow_scripts=True)))

    (warning,) = refused
    assert "allow_scripts" in warning
    assert warning.endswith("echo facts, tools/check.sh")
    assert allowed == []
