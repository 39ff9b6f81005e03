"""Nothing passes that no critic has read."""

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import FlowProject

STEPS = """
workflow:
  - {step: generate, agent: claude}
  - {step: critique, name: review, agent: claude, execution: serial}
  - {step: adjudicate, name: judge, agent: gemini}
  - {step: refine, name: fix, agent: claude, loop_to: review}
"""
COMPLETED, WAITING, LIMIT = 0, 10, 11
HALT = "behavior: {critical: halt, high: halt}\n"


@pytest.mark.parametrize("mode", ["all", "changed"])
@pytest.mark.parametrize(("rounds", "code"), [(1, LIMIT), (2, COMPLETED)])
def test_a_constraint_that_a_halt_skipped_is_read_before_an_approval(
    flow_project: FlowProject, mode: str, rounds: int, code: int
) -> None:
    """The judge dismisses the finding that halted; only then is the second constraint read."""
    flow_project.write_flow(f"rereview: {mode}\nmax_iterations: {rounds}\n{STEPS}")
    flow_project.constraints("a", "b", a=HALT)
    dismissed = {"issue_id": "a-001", "status": "dismissed", "rationale": "It is meant so."}
    flow_project.script(
        play.author_writes(),
        play.critic_finds("a", play.issue(evidence="is wide", id="a-001")),
        play.critic_finds("b", play.issue("CRITICAL", id="b-001"), times=1),
        play.critics_pass(),
        play.judge_decides("APPROVED", dismissed),
        play.editor_replaces(),
    )

    done = flow_project.run()

    assert done.code == code, done.err
    assert "b" in flow_project.call_fields("constraint")
    assert "refine" in flow_project.call_fields("step")


def test_a_text_that_was_changed_after_its_review_is_read_again(flow_project: FlowProject) -> None:
    """The second judge decides about a text that no critique step comes back to."""
    flow_project.write_flow(
        "workflow:\n"
        "  - {step: generate, agent: claude}\n"
        "  - {step: critique, name: review, agent: claude}\n"
        "  - {step: adjudicate, name: judge, agent: policy, on_approved: continue}\n"
        "  - {step: refine, name: fix, agent: claude}\n"
        "  - {step: adjudicate, name: last, agent: policy}\n"
        "max_iterations: 1\n"
    )
    flow_project.constraints("a")
    flow_project.script(
        play.author_writes(),
        play.critic_finds("a", play.issue(id="a-001"), times=1),
        play.critic_finds("a", play.issue("CRITICAL", "The sea", id="a-002")),
        play.editor_replaces(),
    )

    done = flow_project.run()

    assert done.code == LIMIT, done.err
    assert flow_project.call_fields("step").count("critique") == 2


REVIEW = "  - {step: critique, name: review, agent: claude}\n"
NARROW = "  - {step: critique, name: review, agent: claude, constraints: [style-*]}\n"
JUDGE = "  - {step: adjudicate, name: judge, agent: policy}\n"
UNREVIEWED_FLOWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "no constraints": (REVIEW + JUDGE, ()),
    "a glob that matches none": (NARROW + JUDGE, ("clear",)),
    "no critics": (JUDGE, ("clear",)),
    "a judge before all critics": (JUDGE + REVIEW, ("clear",)),
}


@pytest.mark.parametrize("case", ["no constraints", "no critics"])
def test_a_flow_that_allows_it_says_so_in_its_result(flow_project: FlowProject, case: str) -> None:
    """In the terminal, in JSON and in the status file."""
    steps, constraints = UNREVIEWED_FLOWS[case]
    start = "allow_unreviewed: true\nworkflow:\n  - {step: generate, agent: claude}\n"
    flow_project.write_flow(start + steps)
    flow_project.constraints(*constraints)
    flow_project.script(play.author_writes(), play.critics_pass())

    done = flow_project.run()

    assert done.code == COMPLETED, done.err
    assert "allow_unreviewed" in done.out
    assert "allow_unreviewed" in flow_project.read("final/status.md")
    assert "allow_unreviewed" in flow_project.call("show", "one", "--json").out


def test_a_flow_without_a_judge_keeps_its_warning(flow_project: FlowProject) -> None:
    """Nothing passes in it, so nothing passes without a review."""
    flow_project.write_flow("workflow:\n  - {step: generate, agent: claude}\n")

    checked = flow_project.call("validate", "flow.yaml")

    assert checked.code == COMPLETED
    assert "no adjudicate step" in checked.out + checked.err


def test_a_judges_reply_that_no_machine_could_hold_is_sent_back(flow_project: FlowProject) -> None:
    """Its aliases stand for 10^40 values, and reading it would hang the run and each resume."""
    flow_project.write_flow(STEPS)
    flow_project.constraints("a")
    levels = "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(40))
    bomb = f"=== ADJUDICATION ===\nstatus: APPROVED\na0: &a0 [x]\n{levels}"
    flow_project.script(
        play.author_writes(),
        play.critic_finds("a", play.issue(id="a-001")),
        {"step": "adjudicate", "text": bomb},
    )

    done = flow_project.run()

    assert done.code == WAITING, done.err
    assert "written as YAML" in done.out + done.err
    assert flow_project.call_fields("step").count("adjudicate") == 2
