"""Approvals are compared with all findings; decisions hold while their passage is unchanged."""

from typing import Any

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import FlowProject, Rule

APPROVED, WAITING, LIMIT = 0, 10, 11
FINDING = play.issue("CRITICAL", id="clear-001")
NOT_VALID = "cannot pass while these findings are open"


def test_two_judges_in_a_row_do_not_approve_what_the_first_one_pursued(
    flow_project: FlowProject,
) -> None:
    """The second one has no critique left to judge."""
    flow_project.write_flow(
        "max_iterations: 1\n"
        "adjudication: {escalation: {triggers: []}}\n"
        "workflow:\n"
        "  - {step: generate}\n"
        "  - {step: critique}\n"
        "  - {step: adjudicate, name: first}\n"
        "  - {step: adjudicate, name: last}\n"
    )
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes(),
        play.critic_finds("clear", FINDING),
        play.judge_decides("REWRITE", bill="Fix it.", times=1),
        play.judge_decides("APPROVED"),
    )

    done = flow_project.run()

    assert done.code == LIMIT, done.err
    assert flow_project.call_fields("step").count("adjudicate") == 2
    assert NOT_VALID in flow_project.read("final/status.md")


TWO_REVIEWS = """
max_iterations: 1
adjudication: {escalation: {triggers: []}}
workflow:
  - {step: generate}
  - {step: critique, name: early, constraints: [structure]}
  - {step: critique, name: late, constraints: [style]}
  - {step: adjudicate, name: first, on_approved: continue, scope: SCOPE}
  - {step: adjudicate, name: last, scope: previous}
"""


@pytest.mark.parametrize("scope", ["accumulated", "all"])
def test_the_scope_previous_is_the_last_critique_step_judged_or_not(
    flow_project: FlowProject, scope: str
) -> None:
    """What another judge has seen is still what the step before this one found."""
    flow_project.write_flow(TWO_REVIEWS.replace("SCOPE", scope))
    flow_project.constraints("structure", "style")
    flow_project.script(
        play.author_writes(),
        play.critic_finds("structure", play.issue("MEDIUM", finding="No heading.")),
        play.critic_finds("style", play.issue("MEDIUM", finding="Too plain.")),
        play.judge_decides("APPROVED"),
    )

    done = flow_project.run()

    assert done.code == APPROVED, done.err
    first, last = flow_project.sent_prompts(step="adjudicate")
    found = ("No heading.", "Too plain.")
    assert [each in first for each in found] == [True, True]
    assert [each in last for each in found] == [False, True]


def two_passes(
    flow_project: FlowProject, *edits: Rule, finding: Rule = FINDING, **when: Any
) -> None:
    """Sets up the documented flow of two passes, in which the structure has a blocking finding."""
    flow_project.copy_flow("two_pass")
    text = flow_project.folder.joinpath("flow.yaml").read_text()
    limits = "max_iterations: 2\nadjudication: {escalation: {triggers: []}}\n"
    flow_project.write_flow(limits + text)
    flow_project.constraints("structure", "style")
    flow_project.script(
        play.author_writes(),
        play.critic_finds("structure", finding, **when),
        play.critics_pass(),
        play.judge_decides("REWRITE", bill="Fix the see.", times=1),
        play.judge_decides("APPROVED"),
        *edits,
    )


MISSING = play.issue("CRITICAL", "OMISSION", finding="It names no source.", id="structure-001")


@pytest.mark.parametrize(
    ("finding", "edits", "why"),
    [
        # The fix of the structure changed another word, and the style is fine.
        (FINDING, {"wide": "broad", "broad": "Broad"}, "2 rounds without passing"),
        # What is missing has no passage of its own: nobody has added anything anywhere.
        (MISSING, {"no such words": ""}, NOT_VALID),
    ],
)
def test_a_second_pass_does_not_approve_what_the_first_one_left_unfixed(
    flow_project: FlowProject, finding: Rule, edits: dict[str, str], why: str
) -> None:
    """The judge of the second pass approves, and has seen only the style."""
    first, *last = [play.editor_replaces(*each) for each in edits.items()]
    two_passes(flow_project, {**first, **({"times": 1} if last else {})}, *last, finding=finding)

    done = flow_project.run()

    assert done.code == LIMIT, done.err
    status = flow_project.read("final/status.md")
    assert why in status
    assert finding["finding"] in status


def test_what_changed_since_a_critic_read_it_is_read_again_before_the_end(
    flow_project: FlowProject,
) -> None:
    """The first fix missed the passage, and the flow itself never repeats the first pass."""
    edits = play.editor_replaces("wide", "broad", times=1), play.editor_replaces()
    two_passes(flow_project, *edits, contains="The see is")

    done = flow_project.run()

    assert done.code == APPROVED, done.err
    assert flow_project.read("final/artifact.md").startswith("The sea is broad")
    assert flow_project.load("state.json")["iteration"] == 2
    assert flow_project.call_fields("constraint").count("structure") == 3


TWO_LINES = "The see is wide.\nIt works offline.\n"
ESCALATING = """
max_iterations: 4
default_behavior: {critical: escalate}
adjudication: {escalation: {triggers: []}}
workflow:
  - {step: generate}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, loop_to: review}
"""
NAME = play.issue("CRITICAL", "The see is wide.", id="clear-001")
UNTRUE = play.issue("HIGH", "It works offline.", finding="No source says so.", id="clear-002")


def escalated(flow_project: FlowProject, *rules: Rule) -> None:
    """Starts a run that asks about a CRITICAL finding; another one has to be fixed."""
    flow_project.write_flow(ESCALATING)
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes(TWO_LINES),
        play.critic_finds("clear", NAME, UNTRUE, contains=TWO_LINES),
        *rules,
    )
    assert flow_project.run().code == WAITING


def the_finding(flow_project: FlowProject) -> dict[str, Any]:
    """Returns the CRITICAL finding of the run, as programs see it."""
    findings = flow_project.call("show", "one", "--json").json["findings"]
    (finding,) = [each for each in findings if each["severity"] == "CRITICAL"]
    return dict(finding)


def test_a_human_is_asked_again_only_once_the_passage_has_changed(
    flow_project: FlowProject,
) -> None:
    """A critic that repeats itself must not make a human repeat a decision."""
    escalated(
        flow_project,
        play.critic_finds("clear", NAME, contains="The see is wide.\nIt works.\n"),
        play.critic_finds("clear", {**NAME, "evidence": "The see is so wide."}),
        play.editor_replaces("It works offline.", "It works.", times=1),
        play.editor_replaces("see is wide", "see is so wide"),
    )

    again = flow_project.call("answer", "one", "It is a name.", "--resume")

    assert again.code == WAITING, again.err
    # The second round reported the same words and asked nobody; the third has other words.
    assert the_finding(flow_project)["history"] == [
        [1, "new"],
        [2, "still_open"],
        [3, "still_open"],
    ]
    assert "escalate" in flow_project.read("hitl/questions.json")


def test_what_a_human_decided_is_settled_once_critics_no_longer_report_it(
    flow_project: FlowProject,
) -> None:
    """The passage stays as it was, because the human said so."""
    escalated(
        flow_project,
        play.critics_pass(),
        play.editor_replaces("It works offline.", "It works.", times=1),
    )

    done = flow_project.call("answer", "one", "It is a name.", "--resume")

    assert done.code == APPROVED, done.err
    assert flow_project.read("final/artifact.md") == "The see is wide.\nIt works.\n"
    finding = the_finding(flow_project)
    assert (finding["status"], finding["reason"]) == ("dismissed", "a human decided about it")
    assert "A human decided: It is a name." in "".join(flow_project.sent_prompts(number="2"))
