"""Tests of warnings about sources before a run starts."""

from dataclasses import replace
from pathlib import Path

import pytest

from signoff.review.flow.model import GenflowConfig, StepKind, WorkflowStep, with_ids
from signoff.review.flow.sections import (
    ConstraintConfig,
    Goal,
    PriorityRoute,
    RoutingConfig,
    RoutingRule,
)
from signoff.review.flow.validation import flow_warnings, source_problems, source_warnings
from signoff.review.pure.constraint import Constraint, ConstraintBehavior, SourceBlock
from tests.unit.review.flow.harness import changed, constraint, flow


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


GENERATE = WorkflowStep(step=StepKind.GENERATE)
CRITIQUE = WorkflowStep(step=StepKind.CRITIQUE)
ADJUDICATE = WorkflowStep(step=StepKind.ADJUDICATE)
REFINE = WorkflowStep(step=StepKind.REFINE)
USUAL = GenflowConfig(workflow=with_ids((GENERATE, CRITIQUE, ADJUDICATE, REFINE)))
TONE = [Constraint("tone", priority=5)]


def warnings(config: GenflowConfig, constraints: list[Constraint]) -> list[str]:
    return [warning.what for warning in flow_warnings(config, constraints)]


def test_patterns_that_match_nothing_are_reported() -> None:
    """A typo in a pattern silently removes a constraint from review."""
    config = changed(
        USUAL,
        workflow=with_ids((GENERATE, changed(CRITIQUE, constraints=("tone", "styl*")), ADJUDICATE)),
        constraint_behaviors={"ton": ConstraintBehavior()},
        constraints=ConstraintConfig(
            routing=RoutingConfig(
                rules=(
                    RoutingRule(match="sec*", agents=("a",)),
                    RoutingRule(match="t*", agents=("a",)),
                ),
                priority_routing=(
                    PriorityRoute(range=(1, 4), agents=("a",)),
                    PriorityRoute(range=(5, 9), agents=("a",)),
                ),
            )
        ),
    )

    assert warnings(config, TONE) == [
        "workflow[1].constraints[1]: 'styl*' matches no constraint",
        "constraints.routing.rules[0].match: 'sec*' matches no constraint",
        "constraint_behaviors.ton: 'ton' matches no constraint",
        "constraints.routing.priority_routing[0]: no constraint has a priority from 1 to 4",
    ]


def test_a_constraint_that_no_step_reviews_is_reported() -> None:
    """It looks as if it were checked."""
    steps = with_ids((GENERATE, changed(CRITIQUE, constraints=("tone",)), ADJUDICATE))

    found = warnings(GenflowConfig(workflow=steps), [*TONE, Constraint("law")])

    assert found == ["no critique step reviews the artifact against 'law'"]


def test_a_flow_without_constraints_is_one_warning() -> None:
    """Every pattern matches nothing then, which needs no warning of its own."""
    steps = with_ids((GENERATE, changed(CRITIQUE, constraints=("a", "b")), ADJUDICATE))

    assert warnings(GenflowConfig(workflow=steps), []) == [
        "there are no constraints, so critics review nothing"
    ]


def test_judging_that_cannot_work_is_reported() -> None:
    """The run would end at its limit, or judge nothing."""
    blind = with_ids((GENERATE, ADJUDICATE, CRITIQUE))

    assert (
        "nothing passes"
        in warnings(GenflowConfig(workflow=with_ids((GENERATE, CRITIQUE))), TONE)[0]
    )
    assert (
        warnings(GenflowConfig(workflow=blind), TONE)[0]
        == "'adjudicate' judges before any critique step"
    )
