"""What a review run records for its user: which finding led to which change, who read what."""

import pytest

from tests.acceptance.flow_project import (
    FlowProject,
    author_writes,
    critic_finds,
    critics_pass,
    editor_replaces,
    issue,
    judge_decides,
)

STEPS = """
max_iterations: 2
rereview: changed
workflow:
  - {step: generate}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, loop_to: review}
"""
TEA = """# Our house

Our tea is the best in the world. It costs 9 euros.

## Where
Main Street.
"""


def test_a_change_is_linked_only_to_the_finding_that_led_to_it(flow_project: FlowProject) -> None:
    """A reader of `changes.json` takes the finding for the reason of the change."""
    flow_project.write_flow(STEPS)
    flow_project.constraints("tone", "facts", "form")
    first = {"contains": TEA.splitlines()[2]}
    flow_project.script(
        author_writes(TEA),
        critic_finds("tone", issue(evidence="the best in the world", id="loud"), **first),
        critic_finds("facts", issue(evidence="It costs 9 euros", id="fee"), **first),
        critic_finds("form", issue(evidence="OMISSION", id="phone"), **first),
        critics_pass(),
        editor_replaces(
            edit=[
                ["the best in the world", "good"],
                ["# Our house", "# Tea."],
                ["Main Street.", "Main Street.\nCall 555."],
            ]
        ),
    )

    done = flow_project.run()

    assert done.code == 11, "the fee is still wrong"
    changes = flow_project.load("iterations/1/changes.json")
    loud, phone = (
        flow_project.load(f"iterations/1/critiques/{name}-claude.json")["issues"][0]["finding_id"]
        for name in ("tone", "form")
    )
    keys = ("issue", "also", "unclaimed")
    linked = [(h["diff"].splitlines()[-1], *map(h.get, keys)) for h in changes["hunks"]]
    assert linked == [
        ("+# Tea.", None, None, True),
        ("+Our tea is good. It costs 9 euros.", loud, None, None),
        ("+Call 555.", phone, None, None),
    ]
    assert changes["unclaimed"] == 1


def test_the_last_reading_before_an_approval_is_in_the_log(flow_project: FlowProject) -> None:
    """A reader of `thread.jsonl` would think that the approved version was not read."""
    flow_project.write_flow(STEPS)
    # Its rules are too long to be read along with others.
    long_rule = f"  - {{id: numbers, text: '{'Check each number. ' * 400}'}}\n"
    flow_project.constraints("tone", "facts", facts=long_rule)
    flow_project.script(
        author_writes(TEA),
        critic_finds("tone", issue(evidence="the best in the world"), contains=TEA.splitlines()[2]),
        critic_finds("facts", issue("LOW", evidence="9 euros"), contains="tea is good"),
        critics_pass(),
        editor_replaces("the best in the world", "good"),
    )

    done = flow_project.run()

    assert done.code == 0, done.err
    keys = ("step_name", "phase", "constraint", "issues_count", "status")
    lines = [tuple(map(each.get, keys)) for each in flow_project.thread if each["iteration"] == 2]
    assert lines == [
        ("review", "critique", "tone", 0, None),
        ("judge", "critique", "facts", 1, None),
        ("judge", "adjudicate", None, None, "APPROVED"),
    ]
    critique = flow_project.load("iterations/2/critiques/facts-claude.json")
    assert critique["issues"][0]["finding_id"]


def test_an_edit_that_cannot_be_applied_is_reported(flow_project: FlowProject) -> None:
    """The user asked for literal edits, and would think that all of them were made."""
    flow_project.write_flow(STEPS.replace("name: fix", "name: fix, mode: apply"))
    flow_project.constraints("tone", "facts")
    first = {"contains": TEA.splitlines()[2]}
    loud = {"kind": "replace", "find": "the best in the world", "text": "good"}
    fee = {"kind": "replace", "find": "It costs 9 dollars", "text": "It costs 7 euros"}
    flow_project.script(
        author_writes(TEA),
        critic_finds("tone", issue(evidence="the best in the world", edit=loud), **first),
        critic_finds("facts", issue(evidence="It costs 9 euros", edit=fee), **first),
        critics_pass(),
        editor_replaces("9 euros", "7 euros"),
    )

    done = flow_project.run()

    assert done.code == 0, done.err
    critique = flow_project.load("iterations/1/critiques/facts-claude.json")
    name = critique["issues"][0]["finding_id"]
    warning = f"the edit for {name} was not applied (not found): It costs 9 dollars"
    assert f"fix| {warning}" in done.err
    assert f"1 fix: {warning}" in flow_project.call("show", "one").out
    assert "It costs 9 dollars" in flow_project.read("iterations/1/prompt_refine_claude.txt")
    ((edit, why),) = flow_project.load("iterations/1/changes.json")["unmatched"]
    assert (edit["find"], why) == ("It costs 9 dollars", "not found")


WINDOWS = TEA.replace("\n", "\r\n")
PLACE = "## Where\nMain Street."
EDITS = {
    "replace": (PLACE, "## Place\nHigh Street.\nBy the sea."),
    "insert_after": (PLACE, "\nAsk Ann.\nOr Bob."),
    "delete": ("It costs 9 euros.\n\n## Where", ""),
}
ORDERS = {
    "replace": "Replace\n\nFind:\n```\n{}\n```\n\nReplace:\n```\n{}\n```\n",
    "insert_after": "Insert after\n\nAnchor:\n```\n{}\n```\n\nInsert:\n```\n{}\n```\n",
    "delete": "Delete\n\nFind:\n```\n{}\n```\n",
}


@pytest.mark.parametrize("author", ["critic", "judge"])
@pytest.mark.parametrize("kind", EDITS)
def test_edits_of_several_lines_are_made_in_a_file_with_windows_line_endings(
    flow_project: FlowProject, kind: str, author: str
) -> None:
    """Models write \\n; the file keeps its line endings, and no agent is paid to edit it."""
    find, text = EDITS[kind]
    edit = {"kind": kind, "find": find, "text": text} if author == "critic" else None
    order = f"### Issue: form-001 (HIGH)\n\n{ORDERS[kind].format(find, text)}"
    judge = "policy" if author == "critic" else "claude"
    flow_project.write_flow(STEPS.replace("policy", judge).replace(": fix,", ": fix, mode: apply,"))
    flow_project.constraints("form")
    flow_project.script(
        author_writes(WINDOWS),
        critic_finds("form", issue(evidence=find, id="form-001", edit=edit), times=1),
        critics_pass(),
        judge_decides("REWRITE", bill=order),
    )

    done = flow_project.run()

    assert done.code == 0, done.err
    assert "refine" not in flow_project.call_fields("step")
    expected = TEA.replace(find, find + text if kind == "insert_after" else text)
    final = (flow_project.run_dir / "final/artifact.md").read_bytes().decode()
    assert final == expected.replace("\n", "\r\n")


@pytest.mark.parametrize("triggers", ["", "max_iterations"])
def test_warnings_are_in_the_log_where_they_happened(
    flow_project: FlowProject, triggers: str
) -> None:
    """A user who did not watch the run reads its log; each warning is there once."""
    review, invented = "review: warning: tone by claude", "the best in town"
    escalation = f"adjudication: {{escalation: {{triggers: [{triggers}]}}}}\n"
    flow_project.write_flow(escalation + STEPS.replace("max_iterations: 2", "max_iterations: 1"))
    flow_project.constraints("tone")
    flow_project.script(
        author_writes(TEA),
        critic_finds("tone", issue(evidence=invented)),
        editor_replaces("nothing", "something"),
    )

    done = flow_project.run()
    if triggers:
        flow_project.call("answer", "one", "stop", "--resume")

    assert done.code == (10 if triggers else 11), done.err
    for log in (flow_project.call("logs", "one").out, flow_project.read("live.log")):
        lines = [line.partition("  ")[2] for line in log.splitlines()]
        warnings = [line for line in lines if ": warning: " in line]
        assert warnings == [
            f"{review}: sent back: the evidence of tone-001 is not in the artifact: {invented}",
            f"{review}: not found in the artifact: the evidence of tone-001",
            "fix: warning: the refinement changed nothing",
        ]
        review_ends = next(line for line in lines if line.startswith("review: ok in "))
        assert lines.index(warnings[1]) == lines.index(review_ends) - 1
