"""What a review run records for its user: which finding led to which change, who read what."""

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import FlowProject

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
        play.author_writes(TEA),
        play.critic_finds("tone", play.issue(evidence="the best in the world", id="loud"), **first),
        play.critic_finds("facts", play.issue(evidence="It costs 9 euros", id="fee"), **first),
        play.critic_finds("form", play.issue(evidence="OMISSION", id="phone"), **first),
        play.critics_pass(),
        play.editor_replaces(
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
        play.author_writes(TEA),
        play.critic_finds(
            "tone", play.issue(evidence="the best in the world"), contains=TEA.splitlines()[2]
        ),
        play.critic_finds("facts", play.issue("LOW", evidence="9 euros"), contains="tea is good"),
        play.critics_pass(),
        play.editor_replaces("the best in the world", "good"),
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
        play.author_writes(WINDOWS),
        play.critic_finds("form", play.issue(evidence=find, id="form-001", edit=edit), times=1),
        play.critics_pass(),
        play.judge_decides("REWRITE", bill=order),
    )

    done = flow_project.run()

    assert done.code == 0, done.err
    assert "refine" not in flow_project.call_fields("step")
    expected = TEA.replace(find, find + text if kind == "insert_after" else text)
    final = (flow_project.run_dir / "final/artifact.md").read_bytes().decode()
    assert final == expected.replace("\n", "\r\n")
