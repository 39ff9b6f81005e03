"""A critic that no longer reports an open finding has not fixed it."""

from typing import Any

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import FlowProject, Rule

DRAFT = "The see is wide.\nIt works offline.\n"
FLOW = """
max_iterations: 3
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge}
  - {step: refine, name: fix, mode: edit, loop_to: review}
"""
UNTRUE = play.issue(evidence="It works offline.", finding="No source says so.", id="clear-001")
NOT_AGAIN = "No source says so. (not reported again)"


@pytest.fixture
def forgetful(flow_project: FlowProject) -> FlowProject:
    """A project whose critic reports a HIGH finding once; the fixer first edits something else."""
    flow_project.write_flow(FLOW)
    flow_project.constraints("clear")
    return flow_project


def script(project: FlowProject, *rest: Rule) -> None:
    """Scripts the first round; the second one begins with the passage unchanged."""
    project.script(
        play.author_writes(DRAFT),
        play.critic_finds("clear", UNTRUE, contains="The see"),
        play.critics_pass(),
        play.judge_decides("REWRITE", bill="Fix it.", contains="The see"),
        play.editor_replaces("see", "sea", times=1),
        *rest,
    )


def the_finding(project: FlowProject) -> dict[str, Any]:
    """Returns the only finding of the run, as programs see it."""
    (finding,) = project.call("show", "one", "--json").json["findings"]
    return dict(finding)


def verdicts(project: FlowProject) -> list[str]:
    """Returns what became of the judge's verdict in each round."""
    return [each["status"] for each in project.thread if each["phase"] == "adjudicate"]


def test_an_approval_is_held_back_until_the_passage_changes(forgetful: FlowProject) -> None:
    """The text still has the problem; a critic's bad memory must not get it approved."""
    script(
        forgetful, play.judge_decides("APPROVED"), play.editor_replaces("It works offline.\n", "")
    )

    done = forgetful.run()

    assert done.code == 0, done.err
    assert verdicts(forgetful) == ["REWRITE", "REWRITE", "APPROVED"]
    held = forgetful.read("iterations/2/adjudication_judge.yaml")
    assert "stated: APPROVED" in held
    assert "it cannot pass while these findings have to be fixed" in held
    assert NOT_AGAIN in forgetful.read("iterations/2/prompt_adjudicate_claude.txt")
    assert "No source says so." in forgetful.read("iterations/2/prompt_refine_claude.txt")
    finding = the_finding(forgetful)
    assert finding["history"] == [[1, "new"], [2, "still_open"], [3, "fixed"]]
    assert forgetful.read("final/artifact.md") == "The sea is wide.\n"


def test_it_stays_open_until_the_judge_dismisses_it(forgetful: FlowProject) -> None:
    """At the limit it is listed as open; a false alarm needs no change to the text."""
    forgetful.write_flow(
        FLOW.replace("max_iterations: 3", "max_iterations: 2")
        + "adjudication: {escalation: {triggers: [max_iterations]}}\n"
    )
    script(forgetful, play.judge_decides("APPROVED"), play.editor_replaces("wide", "vast"))
    held = forgetful.run()
    waiting = the_finding(forgetful)
    status = forgetful.read("final/status.md")
    dismissal = {"issue_id": waiting["id"], "status": "dismissed", "rationale": "The FAQ says so."}
    script(
        forgetful, play.judge_decides("APPROVED", dismissal), play.editor_replaces("wide", "vast")
    )

    done = forgetful.call("answer", "one", "continue", "--resume")

    assert (held.code, waiting["status"], waiting["not_reported_again"]) == (10, "still_open", True)
    assert "No source says so." in status
    assert done.code == 0, done.err
    finding = the_finding(forgetful)
    assert (finding["status"], finding["reason"]) == ("dismissed", "The FAQ says so.")
    assert "It works offline." in forgetful.read("final/artifact.md")
