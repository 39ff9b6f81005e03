"""Commands that messages suggest, used as they are printed.

Whether each of them parses is checked where all acceptance tests see their output; here, those
that start a run again are run.
"""

from __future__ import annotations

import shlex

import pytest

from tests.acceptance.cli_project import CliProject
from tests.acceptance.flow_project import FlowProject
from tests.acceptance.review_project import ReviewProject, finds, issue
from tests.acceptance.suggested_commands import check_suggestions, suggestions
from tests.tables import table


def again(text: str) -> list[str]:
    """Returns the words of the one command that starts a run again."""
    (command,) = {each for each in suggestions(text) if each.startswith("run ")}
    return shlex.split(command)


def test_a_flow_starts_again_with_its_goal(flow_project: FlowProject) -> None:
    """`signoff run flow.yaml` alone was refused: the goal was missing."""
    flow_project.copy_flow("minimal")
    flow_project.constraints("style")
    flow_project.run("--pull")
    flow_project.call("cancel", "one")

    command = again(flow_project.call("show", "one").out)
    planned = flow_project.call(*command, "--dry-run")

    assert command == ["run", "--again", "one"]
    assert (planned.code, planned.err) == (0, "")
    assert flow_project.call(*command, "--name", "two").code == 10
    assert "flow.yaml" in flow_project.call("runs", "--json").out


def test_a_pair_starts_again_with_its_task(flow_project: FlowProject) -> None:
    """`signoff run pair:slogan` exited with 2: the task was missing."""
    started = flow_project.call("run", "pair:slogan", "-i", "task=tea", "--name", "one", "--pull")
    assert started.code == 10, started.err
    flow_project.call("cancel", "one")

    planned = flow_project.call(*again(flow_project.call("show", "one").out), "--dry-run")

    assert planned.code == 0, planned.err
    assert "task = 'tea'" in planned.out


def test_a_review_starts_again_with_its_files(review_project: ReviewProject) -> None:
    """`signoff run review:files` was refused: a review has its own command."""
    review_project.script(finds(issue("docs/a.md")))
    review_project.review("docs/a.md", "--fix", "--limit", "calls=1")
    review_project.call("cancel", "one")

    command = again(review_project.call("show", "one").out)
    review_project.script()
    done = review_project.call(*command, "--name", "two", "--limit", "calls=9")

    assert done.code == 0, done.err
    assert "docs/a.md" in review_project.call("show", "two", "--json").out


def test_a_run_that_cannot_start_again_says_why(
    project: CliProject, subtests: pytest.Subtests
) -> None:
    project.signoff("init")
    for words, why in (
        ((), "name a target, or a run with --again"),
        (("flow.yaml", "--again", "one"), "name a target, or a run with --again"),
        (("--again", "other"), "other"),
    ):
        with subtests.test(words=words):
            done = project.signoff("run", *words)

            assert done.returncode == 2
            assert why in done.stderr


@table(
    "text",
    {
        "unknown command": "do it: signoff resum one",
        "unknown option": "do it: signoff resume one --adapt",
        "unknown command of a group": "do it: signoff models push",
    },
)
def test_a_suggestion_that_does_not_parse_fails_the_test_that_prints_it(text: str) -> None:
    with pytest.raises(AssertionError, match="signoff"):
        check_suggestions(text)
