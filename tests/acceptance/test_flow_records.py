"""What a review run records for its user: which finding led to which change, who read what."""

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
    # What has a script is not read along with others.
    flow_project.constraints("tone", "facts", facts="script: ./numbers.sh\n")
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
