"""Tests of what is said about sources before a run begins."""

from dataclasses import replace
from pathlib import Path

from signoff.flows.sections import Goal
from signoff.flows.warnings import source_warnings
from signoff.review.constraint import SourceBlock
from tests.unit.flows.harness import constraint, flow


def test_what_cannot_be_read_is_said_before_anything_is_paid_for(tmp_path: Path) -> None:
    """A misspelt path would else be noticed in the artifact, if at all."""
    (tmp_path / "there.md").write_text("Facts.")
    block = SourceBlock(files=("there.md", "gone.md", "/etc/passwd"), globs=("*.txt",))
    told = replace(flow(root=tmp_path), goal=Goal(goal="Write.", source=block))

    remarks = list(source_warnings(told))

    assert remarks == [
        "sources of the goal: /etc/passwd: is outside the project",
        "sources of the goal: gone.md: no such file",
        "sources of the goal: *.txt: matches no file",
    ]


def test_a_path_of_the_run_itself_is_not_judged_before_there_is_one(tmp_path: Path) -> None:
    """A warning that is wrong teaches people to read none."""
    block = SourceBlock(files=("{{run_dir}}/notes.md",))
    told = flow(constraints=[constraint("clear", source=block)], root=tmp_path)

    assert list(source_warnings(told)) == []


def test_scripts_that_will_not_run_are_named_with_the_way_to_allow_them(tmp_path: Path) -> None:
    """Whoever wrote a script expects it to run; silence would cost an afternoon."""
    one = constraint("clear", source=SourceBlock(scripts=("echo facts",)), script="tools/check.sh")

    refused = list(source_warnings(flow(constraints=[one], root=tmp_path)))
    allowed = list(source_warnings(flow(constraints=[one], root=tmp_path, allow_scripts=True)))

    (warning,) = refused
    assert "allow_scripts" in warning
    assert warning.endswith("echo facts, tools/check.sh")
    assert allowed == []
