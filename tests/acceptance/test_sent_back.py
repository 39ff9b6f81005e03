"""Nothing valid is lost when a critic's answer is sent back."""

import json
from typing import Any

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import FlowProject, Rule
from tests.acceptance.review_project import ReviewProject, finds
from tests.acceptance.review_project import issue as file_issue

FLOW = """
max_iterations: 1
workflow:
  - {step: generate, agent: claude}
  - {step: critique, name: review, agent: gemini}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, agent: claude, loop_to: review}
"""
APPROVED, WAITING, LIMIT, FINDINGS_OPEN = 0, 10, 11, 17
VALID = play.issue(id="valid", finding="The sea is misspelled.")
INVENTED = play.issue(evidence="words that nobody wrote", id="invented")
REASON = "It is the See, a lake."


def withdraws(*withdrawn: Any, overall: str = "PASS") -> str:
    """Returns a second answer without issues that withdraws some of the first."""
    critique = {"overall": overall, "issues": [], "summary": "fine", "withdrawn": list(withdrawn)}
    return json.dumps(critique)


def begin(flow_project: FlowProject, second: str, *first: Rule) -> None:
    """Sets up one round in which a critic's first answer is sent back."""
    flow_project.write_flow(FLOW)
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes(),
        *(first or [play.critic_finds("clear", VALID, INVENTED, times=1)]),
        {"step": "critique", "again": True, "text": second},
        play.editor_replaces(),
    )


SECOND_ANSWERS: dict[str, tuple[str, int]] = {
    "passes": (play.passing_critique(), LIMIT),
    "fails without naming it again": (withdraws(overall="FAIL"), LIMIT),
    "withdraws it": (withdraws({"id": "valid", "reason": REASON}), APPROVED),
    "withdraws it without a reason": (withdraws({"id": "valid", "reason": " "}), LIMIT),
    "withdraws another": (withdraws({"id": "clear-007", "reason": REASON}), LIMIT),
    "withdraws by a list of ids": (withdraws("valid"), LIMIT),
    "withdraws everything": (
        withdraws({"id": "valid", "reason": REASON}, {"id": "invented", "reason": "Invented."}),
        APPROVED,
    ),
    "rates it lower": (
        json.dumps({"overall": "PASS", "issues": [{**VALID, "severity": "LOW"}]}),
        LIMIT,
    ),
    "withdraws it and rates it lower": (
        json.dumps(
            {
                "overall": "PASS",
                "issues": [{**VALID, "severity": "LOW"}],
                "withdrawn": [{"id": "valid", "reason": "A typo changes nothing."}],
            }
        ),
        APPROVED,
    ),
}


@pytest.mark.parametrize("second", SECOND_ANSWERS)
def test_a_valid_finding_of_the_first_answer_stays_unless_withdrawn(
    flow_project: FlowProject, second: str
) -> None:
    """One finding has a true quote, the other an invented one, so the answer is sent back."""
    answer, code = SECOND_ANSWERS[second]
    begin(flow_project, answer)

    done = flow_project.run()

    assert done.code == code, done.err
    assert ("answers 1 finding" in done.err) == (code == LIMIT)
    assert flow_project.call_fields("step").count("critique") == 2


def test_withdrawals_are_logged_with_their_reasons(flow_project: FlowProject) -> None:
    """Who reads the log sees why a finding is gone, and what was ignored."""
    unknown = {"id": "clear-007", "reason": REASON}
    begin(flow_project, withdraws({"id": "valid", "reason": REASON}, unknown))

    done = flow_project.run()

    assert done.code == APPROVED, done.err
    log = flow_project.read("live.log")
    assert f"withdrawn: valid (HIGH): {REASON}" in log
    assert "clear-007" in log


def test_a_pass_that_contradicts_its_finding_is_not_corrected_by_dropping_it(
    flow_project: FlowProject,
) -> None:
    """The first answer passes with a blocking finding whose quote is true."""
    first = json.dumps({"overall": "PASS", "issues": [VALID]})
    begin(flow_project, play.passing_critique(), {"step": "critique", "text": first, "times": 1})

    done = flow_project.run()

    assert done.code == LIMIT, done.err


def test_a_second_answer_that_cannot_be_read_keeps_the_first_for_the_human(
    flow_project: FlowProject,
) -> None:
    """The human can count what was valid."""
    begin(flow_project, "I think it is fine.")
    waiting = flow_project.run()

    answered = flow_project.call("answer", "one", "findings")
    done = flow_project.call("resume", "one")

    assert waiting.code == WAITING
    assert answered.code == 0, answered.err
    assert done.code == LIMIT, done.err


WHOLE = json.dumps({"overall": "FAIL", "issues": [VALID, {"finding": "It ends here."}]})
CUT = WHOLE[: WHOLE.index("ends")]
BROKEN = {
    "cut off": CUT,
    "fenced and cut off": f"Here is my review.\n\n```json\n{CUT}",
    "with brackets that do not match": WHOLE.replace("]", ")"),
    "with two verdicts": f"{WHOLE}\n\nOn second thought:\n\n{play.passing_critique()}",
    "with an unknown verdict": WHOLE.replace("FAIL", "MAYBE"),
    "with a list of another name": json.dumps({"overall": "FAIL", "findings": [VALID]}),
    "that passes with an issue elsewhere": play.passing_critique()[:-1]
    + f', "more": [{json.dumps(VALID)}]}}',
    "inside another object": json.dumps({"review": {"overall": "FAIL", "issues": [VALID]}}),
    "with an issue that is a text": WHOLE.replace(', {"finding": "It ends here."}', ', "It ends"'),
}
"""First answers that are no critique, each with one valid issue."""


@pytest.mark.parametrize("broken", BROKEN)
def test_a_whole_finding_of_an_answer_that_cannot_be_read_stays_unless_withdrawn(
    flow_project: FlowProject, broken: str
) -> None:
    first: Rule = {"step": "critique", "text": BROKEN[broken], "times": 1}
    begin(flow_project, play.passing_critique(), first)
    kept = flow_project.run()

    begin(flow_project, withdraws({"id": "valid", "reason": REASON}), first)
    withdrawn = flow_project.run("--name", "two")

    assert kept.code == LIMIT, kept.err
    assert "answers 1 finding" in kept.err
    assert withdrawn.code == APPROVED, withdrawn.err


def test_a_finding_with_the_wrong_path_is_about_the_file_with_its_quote(
    review_project: ReviewProject,
) -> None:
    """A model that writes `b.md` for `docs/b.md` is asked again, and may not mention it then."""
    review_project.write("docs/b.md", "It is fast. It always works.\n")
    wrong = file_issue("b.md", "It is fast. It always works.")
    review_project.script({**finds(wrong), "times": 1})

    done = review_project.review("docs")

    assert done.code == FINDINGS_OPEN, done.out + done.err
    assert "docs/b.md:1: HIGH tone/sure: Too sure." in done.out


def test_a_half_finding_and_one_with_an_invented_quote_are_not_kept(
    flow_project: FlowProject,
) -> None:
    both = json.dumps({"overall": "FAIL", "issues": [INVENTED, VALID]})
    half = both[: both.rindex("evidence") + 15]
    begin(flow_project, play.passing_critique(), {"step": "critique", "text": half, "times": 1})

    assert flow_project.run().code == APPROVED


def test_an_issue_that_is_quoted_from_the_artifact_is_not_kept(flow_project: FlowProject) -> None:
    """The text under review may contain an answer; a critic that copies it has found nothing."""
    begin(flow_project, play.passing_critique())
    quoted = json.dumps(VALID)
    flow_project.script(
        {"step": "generate", "text": f"The see is calm.\n\n{quoted}\n"},
        {"step": "critique", "text": f'It says {quoted}, and {{"overall": "PA', "times": 1},
        {"step": "critique", "again": True, "text": play.passing_critique()},
    )

    assert flow_project.run().code == APPROVED


def test_a_second_answer_that_is_cut_off_adds_to_the_first_for_the_human(
    flow_project: FlowProject,
) -> None:
    begin(flow_project, CUT)

    waiting = flow_project.run()
    answered = flow_project.call("answer", "one", "findings")
    done = flow_project.call("resume", "one")

    assert (waiting.code, answered.code, done.code) == (WAITING, 0, LIMIT)
