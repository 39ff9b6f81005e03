"""The `sign_off` step, and a human as the judge: decisions that a human can make."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.review_project import ReviewProject, finds, issue

FLOW = """
artifact: {path: docs}
rereview: changed
output: {write_back: on_approval}
workflow:
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: apply, loop_to: review}
  - {step: sign_off, name: approval}
"""
EDIT = {"kind": "replace", "find": "It always works.", "text": "It usually works."}


@pytest.fixture
def waiting(review_project: ReviewProject) -> ReviewProject:
    """A run whose files were fixed and that waits for the sign-off."""
    review_project.write("flow.yaml", FLOW)
    review_project.script(
        finds(issue("docs/b.md", edit=EDIT), issue("docs/a.md", severity="MEDIUM"), times=1),
        {"step": "fix", "contains": "nicer", "text": "ok", "files": {"b.md": "It works.\n"}},
        {"step": "fix", "contains": "shorter", "text": "ok", "files": {"b.md": "Works.\n"}},
        {"step": "fix", "text": "nothing to do"},
    )
    assert review_project.call("run", "flow.yaml", "--name", "one", "--no-input").code == 10
    return review_project


def request(project: ReviewProject) -> dict[str, Any]:
    (item,) = project.call("inbox", "one", "--json").json
    return dict(item)


def test_the_human_sees_the_diff_the_findings_and_the_cost(waiting: ReviewProject) -> None:
    item = request(waiting)

    assert [each["label"] for each in item["options"]] == ["approve", "request changes", "reject"]
    assert "+It usually works." in item["shown"]["changes"]
    (line,) = item["shown"]["open findings"]
    assert line.startswith("docs/a.md:3: MEDIUM tone/sure: Too sure. [")
    assert item["shown"]["constraints"]["tone"] == "1 MEDIUM open; read by claude"
    assert next(iter(item["shown"])) == "open findings"
    assert "with 1 finding open (1 MEDIUM)" in item["prompt"]
    assert "calls · " in item["shown"]["cost"]
    assert "replace those of the project" in item["prompt"]
    assert waiting.read("docs/b.md") == "It always works.\n"


@pytest.mark.both_stores
def test_an_approval_writes_the_files_back(waiting: ReviewProject) -> None:
    result = waiting.call("approve", "one", "--resume", "--no-input")

    assert result.code == 0
    assert waiting.read("docs/b.md") == "It usually works.\n"


def test_a_change_request_becomes_a_finding_that_is_fixed_and_signed_off_again(
    waiting: ReviewProject,
) -> None:
    text = "docs/b.md should be shorter"
    waiting.call("answer", "one", "request changes", "--text", text)
    assert waiting.call("resume", "one", "--no-input").code == 10

    item = request(waiting)
    assert "+Works." in item["shown"]["changes"]
    (asked,) = [
        each
        for each in waiting.call("show", "one", "--json").json["findings"]
        if each["constraint"] == "sign_off"
    ]
    assert (asked["finding"], asked["path"]) == (text, "docs/b.md")
    assert waiting.call("approve", "one", "--resume", "--no-input").code == 0
    assert waiting.read("docs/b.md") == "Works.\n"


def test_every_surface_counts_a_request_that_was_met_the_same_way(waiting: ReviewProject) -> None:
    """The decision page, `inbox`, `findings`, `show` and the chart must not contradict."""
    text = "docs/b.md should be shorter"
    waiting.call("answer", "one", "request changes", "--text", text, "--resume", "--no-input")

    item = request(waiting)
    assert not any(text in line for line in item["shown"]["open findings"])
    assert any(text in line for line in item["shown"]["fixed at your request"])
    found = waiting.call("findings", "one").out
    assert "fixed in round 3, awaiting your sign-off" in found
    assert "3 findings: 1 open, 1 awaiting your sign-off, 1 fixed" in found
    state = waiting.call("show", "one", "--json").json
    assert [sum(each["open"].values()) for each in state["rounds"]] == [2, 2, 1]
    (asked,) = [each for each in state["findings"] if each["constraint"] == "sign_off"]
    assert f"answers {asked['id']} (sign_off)" in waiting.call("diff", "one", "--round", "2").out

    waiting.call("approve", "one", "--resume", "--no-input")

    assert "3 findings: 1 open, 2 fixed" in waiting.call("findings", "one").out
    last = waiting.call("show", "one", "--json").json["rounds"][-1]
    assert (last["open"]["HIGH"], last["fixed"]) == (0, 1)
    waiting.call("report", "one", "-o", "one.html")
    assert "round 3: 1 open" in waiting.read("one.html")


def test_a_text_is_signed_off_and_a_change_request_is_fixed(review_project: ReviewProject) -> None:
    review_project.write(
        "flow.yaml",
        """
goal: Write a sentence.
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: rewrite, loop_to: review}
  - {step: sign_off}
""",
    )
    review_project.script(
        {"step": "draft", "text": "A sentence."}, {"step": "fix", "text": "A short sentence."}
    )
    review_project.call("run", "flow.yaml", "--name", "one", "--no-input")
    assert request(review_project)["shown"]["artifact"] == "A sentence.\n"

    review_project.call("answer", "one", "request changes", "--text", "Say that it is short.")
    review_project.call("resume", "one", "--no-input")
    assert request(review_project)["shown"]["artifact"] == "A short sentence.\n"
    assert review_project.call("approve", "one", "--resume", "--no-input").code == 0
    assert review_project.read(".signoff/runs/one/final/artifact.md") == "A short sentence.\n"
    shown = review_project.call("show", "one", "--json").json
    assert shown["result"]["passed"]
    assert shown["result"]["approved_by"] == shown["decisions"][-1]["by"] != ""


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("{step: sign_off, deadline: 60}", "needs both deadline and default"),
        ("{step: sign_off, agent: claude}", "agent"),
        ("{step: sign_off, deadline: 60, default: maybe}", "one of: approve, reject"),
    ],
)
def test_a_wrong_sign_off_is_refused(
    review_project: ReviewProject, step: str, problem: str
) -> None:
    review_project.write("flow.yaml", FLOW.replace("{step: sign_off, name: approval}", step))

    result = review_project.call("validate", "flow.yaml")

    assert result.code == 2
    assert problem in result.out + result.err


def test_a_human_judge_decides_about_each_finding(review_project: ReviewProject) -> None:
    """Nobody should have to write JSON to dismiss a finding."""
    review_project.write(
        "flow.yaml",
        """
artifact: {path: docs}
workflow:
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: manual}
""",
    )
    review_project.script(finds(issue("docs/a.md"), issue("docs/b.md")))
    assert review_project.call("run", "flow.yaml", "--name", "one", "--no-input").code == 10

    item = request(review_project)
    questions = item["questions"]
    assert [[each["label"] for each in q["options"]] for q in questions] == [["fix", "dismiss"]] * 2
    assert questions[0]["text"].startswith("docs/a.md:3: HIGH tone/sure: Too sure.")
    answers = [f"{q['header']}=dismiss" for q in questions]
    review_project.call("answer", "one", *answers, "--text", "it is a slogan")
    assert review_project.call("resume", "one", "--no-input").code == 0
    findings = review_project.call("show", "one", "--json").json["findings"]
    assert {(f["status"], f["reason"]) for f in findings} == {("dismissed", "it is a slogan")}
    assert "JSON" not in json.dumps(item)


def test_an_approval_that_cannot_be_written_is_no_success(waiting: ReviewProject) -> None:
    """A run must not end as a success if the approved fix is not in the project."""
    waiting.write("docs/b.md", "Edited meanwhile.\n")

    result = waiting.call("approve", "one", "--resume", "--no-input")

    assert result.code == 1
    assert "docs/b.md was changed during the review; no file was written" in result.err
    assert waiting.read(".signoff/runs/one/final/docs/b.md") == "It usually works.\n"
    assert waiting.read("docs/b.md") == "Edited meanwhile.\n"
    assert waiting.call("resume", "one", "--no-input").code == 1

    waiting.write("docs/b.md", "It always works.\n")
    result = waiting.call("resume", "one", "--no-input")

    assert result.code == 0
    assert "approval: wrote docs/b.md" in result.err
    assert waiting.read("docs/b.md") == "It usually works.\n"
    assert waiting.call("show", "one", "--json").json["result"]["written"] == ["docs/b.md"]
    assert "\nwrote docs/b.md.\n" in waiting.read(".signoff/runs/one/final/status.md")
