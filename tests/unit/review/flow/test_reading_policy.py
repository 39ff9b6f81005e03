"""Tests of policy files: their keys count, and everything else stays."""

from pathlib import Path

import pytest

from signoff.core.errors import InvalidWorkflow
from signoff.core.severity import SEVERITIES, Severity
from signoff.review.flow.model import AdjudicationConfig, GenflowConfig
from signoff.review.flow.reading import read_policy
from signoff.review.pure.constraint import ConstraintBehavior
from tests.unit.review.flow.harness import MINIMAL, changed

RUN = changed(
    GenflowConfig(workflow=MINIMAL),
    default_behavior=ConstraintBehavior.from_dict({"critical": "escalate", "high": "continue"}),
    constraint_behaviors={"tone": ConstraintBehavior.from_dict({"low": "halt"})},
    adjudication=AdjudicationConfig(block_on=(Severity.CRITICAL,), instructions="Be strict."),
)


def policy(tmp_path: Path, text: str) -> GenflowConfig:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    return read_policy(file, RUN)


def test_what_a_policy_leaves_out_stays_as_in_the_run(tmp_path: Path) -> None:
    """A question about one severity must not change four."""
    read = policy(tmp_path, "default_behavior: {high: halt}\n")

    assert read.default_behavior.to_json() == {"critical": "escalate", "high": "halt"}
    assert changed(read, default_behavior=RUN.default_behavior) == RUN


@pytest.mark.parametrize(
    "text",
    [
        "adjudication: {approval: {policy: all_resolved}}\n",
        f"adjudication: {{approval: {{block_on: [{SEVERITIES}]}}}}\n",
        "termination: {approve_when: all_resolved}\n",
    ],
)
def test_what_blocks_approval_is_read_from_every_key_that_can_set_it(
    tmp_path: Path, text: str
) -> None:
    """Three keys mean the same thing; one that has no effect would be a trap."""
    read = policy(tmp_path, text)

    assert set(read.adjudication.block_on) == set(Severity)
    assert read.adjudication.instructions == "Be strict."


def test_other_keys_about_the_judge_do_not_change_what_blocks(tmp_path: Path) -> None:
    """`instructions` have nothing to do with severities."""
    read = policy(tmp_path, "adjudication: {instructions: Be mild.}\n")

    assert read == RUN


@pytest.mark.parametrize("name", ["full", "genloop"])
def test_a_whole_file_of_either_kind_is_a_policy(tmp_path: Path, name: str) -> None:
    """Users try the flow that they are about to use."""
    file = Path(__file__).parents[3] / "fixtures/flows" / f"{name}.yaml"

    read = read_policy(file, RUN)

    assert set(read.adjudication.block_on) == {Severity.CRITICAL, Severity.HIGH}
    assert read.workflow == RUN.workflow


def test_mistakes_in_a_policy_are_refused_with_their_lines(tmp_path: Path) -> None:
    """A misspelled behavior must not lead to `nothing would change`."""
    with pytest.raises(InvalidWorkflow) as caught:
        policy(tmp_path, "default_behavior: {low: kontinue}\nfoo: 1\n")

    problems = [str(problem) for problem in caught.value.problems]
    assert [each.rpartition("policy.yaml:")[2][:2] for each in problems] == ["1:", "2:"]
    assert "halt, continue, escalate, ignore" in problems[0]
    assert "unknown key 'foo'" in problems[1]
