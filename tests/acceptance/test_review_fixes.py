"""`signoff review --fix`: fixes on copies, a diff, and files that change only when told to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from signoff.runtime import performers, project_files
from tests.acceptance.review_project import ReviewProject, finds, issue

EDIT = {"kind": "replace", "find": "It always works.", "text": "It usually works."}
FIXED = "It usually works.\n"
WRITES_BACK = """
artifact: {globs: ["docs/*.md"]}
rereview: changed
output: {write_back: on_approval}
workflow:
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: apply, loop_to: review}
"""


@pytest.fixture
def fixable(review_project: ReviewProject) -> ReviewProject:
    """A project with two findings whose exact edits are known."""
    review_project.script(
        finds(issue("docs/a.md", edit=EDIT), issue("docs/b.md", edit=EDIT), times=1)
    )
    return review_project


def change_before_writing(project: ReviewProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has someone change a file right before a run writes it for the first time."""
    changed: list[Path] = []

    def replace_files(*arguments: Any) -> dict[str, list[str]]:
        if not changed:
            changed.append(project.write("docs/b.md", "Somebody else was here.\n"))
        return project_files.replace_files(*arguments)

    monkeypatch.setattr(performers, "replace_files", replace_files)


def test_a_fix_is_printed_as_a_diff_and_changes_no_file(fixable: ReviewProject) -> None:
    result = fixable.review("docs", "--fix")

    # The files still have the findings, so `review --fix && deploy` must not deploy them.
    assert result.code == 17
    assert "no open findings in 2 files\n2 findings fixed in copies, not written\n" in result.out
    assert "--- a/docs/b.md\n+++ b/docs/b.md\n@@ -1 +1 @@\n-It always works.\n" in result.out
    assert "no file was changed; --write applies fixes, --patch FILE keeps them" in result.out
    assert fixable.git("status", "--porcelain") == ""
    final = ".signoff/runs/one/final/docs"
    assert fixable.read(f"{final}/b.md") == FIXED
    assert fixable.read(f"{final}/a.md").endswith(FIXED)


def test_a_patch_applies(fixable: ReviewProject) -> None:
    result = fixable.review("docs", "--fix", "--patch", "fix.patch")

    assert result.code == 17
    assert "2 findings fixed in copies, not written" in result.out
    assert "fix.patch: apply them with git apply" in result.out
    fixable.git("apply", "fix.patch")

    assert fixable.read("docs/b.md") == FIXED


def test_fixes_are_written_on_approval(fixable: ReviewProject) -> None:
    (fixable.folder / "docs/b.md").chmod(0o755)

    result = fixable.review("docs", "--fix", "--write")

    assert result.code == 0
    assert "wrote docs/a.md, docs/b.md" in result.out
    assert "not written" not in result.out
    assert fixable.read("docs/b.md") == FIXED
    assert (fixable.folder / "docs/b.md").stat().st_mode & 0o777 == 0o755


def test_a_file_that_changed_during_the_review_is_not_overwritten(
    fixable: ReviewProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other files stay as they are, too: half a fix is worse than none."""
    change_before_writing(fixable, monkeypatch)

    result = fixable.review("docs", "--fix", "--write")

    assert result.code == 1
    assert "docs/b.md was changed during the review; no file was written" in result.err
    assert fixable.read("docs/b.md") == "Somebody else was here.\n"
    assert fixable.read("docs/a.md").endswith("It always works.\n")


def test_an_agent_fixes_what_has_no_exact_edit(review_project: ReviewProject) -> None:
    """It gets one file at a time, with the findings about it."""
    review_project.script(
        finds(issue("docs/a.md"), issue("docs/b.md"), times=1),
        {"step": "fix", "contains": "`a.md`", "text": "ok", "files": {"a.md": "Port 80.\n"}},
        {"step": "fix", "contains": "`b.md`", "text": "ok", "files": {"b.md": FIXED}},
    )

    result = review_project.review("docs", "--fix", "--write")

    assert result.code == 0
    assert "policy: asks for changes, 2 to fix" in result.err
    assert review_project.read("docs/a.md") == "Port 80.\n"
    assert review_project.read("docs/b.md") == FIXED


IGNORES = "<!-- signoff: ignore sure accepted -->\nIt always works.\n"


@pytest.mark.parametrize("by", ["the fixer", "an exact edit of the critic"])
def test_a_fix_cannot_dismiss_a_finding_with_a_comment(
    review_project: ReviewProject, by: str
) -> None:
    """Otherwise the next review of the file would be green."""
    edit: dict[str, Any] = {"edit": {**EDIT, "text": IGNORES}} if by != "the fixer" else {}
    review_project.script(
        finds(issue("docs/b.md", **edit)),
        {"step": "fix", "text": "ok", "files": {"b.md": IGNORES}},
    )

    result = review_project.review("docs/b.md", "--fix", "--write")
    again = review_project.review("docs/b.md", "--name", "two")

    assert (result.code, again.code) == (17, 17)
    assert "added a comment that ignores a rule" in result.err
    assert review_project.read("docs/b.md") == "It always works.\n"


def test_fixes_that_do_not_help_leave_findings_open(review_project: ReviewProject) -> None:
    review_project.script(
        finds(issue("docs/b.md", "It", finding="Still too sure.")),
        {"step": "fix", "text": "ok", "files": {"b.md": "It may work.\n"}},
    )

    result = review_project.review("docs/b.md", "--fix", "--write")

    assert result.code == 17
    assert review_project.read("docs/b.md") == "It may work.\n"


@pytest.mark.parametrize("option", [("--write",), ("--patch", "x"), ("--fixer", "other")])
def test_options_about_fixes_need_fixes(
    review_project: ReviewProject, option: tuple[str, ...]
) -> None:
    assert review_project.review("docs", *option).code == 2


def test_a_flow_file_starts_from_files_and_writes_them_back(fixable: ReviewProject) -> None:
    fixable.write("flow.yaml", WRITES_BACK)

    assert fixable.call("validate", "flow.yaml").code == 0
    assert fixable.call("run", "flow.yaml", "--name", "one").code == 0
    assert fixable.read("docs/b.md") == FIXED


@pytest.mark.parametrize(
    ("flow", "problem"),
    [
        ("artifact: {}\nworkflow: [{step: critique}]\n", "artifact names no files"),
        (
            "artifact: {since: main, globs: [a.md]}\nworkflow: [{step: critique}]\n",
            "globs choose files of the project",
        ),
        ("artifact: {path: x}\nworkflow: [{step: generate}]\n", "has no generate step"),
        ("artifact: {path: x}\nworkflow: [{step: critique, name: files}]\n", "choose another name"),
        ("output: {write_back: on_approval}\nworkflow: [{step: generate}]\n", "comes from no file"),
        ("workflow: [{step: critique}]\n", "add artifact:"),
    ],
)
def test_a_wrong_flow_about_files_is_refused(
    review_project: ReviewProject, flow: str, problem: str
) -> None:
    review_project.write("flow.yaml", flow)

    result = review_project.call("validate", "flow.yaml")

    assert result.code == 2
    assert problem in result.out + result.err


def test_a_flow_without_sign_off_fails_until_its_files_can_be_written(
    fixable: ReviewProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixable.write("flow.yaml", WRITES_BACK)
    change_before_writing(fixable, monkeypatch)

    result = fixable.call("run", "flow.yaml", "--name", "one")

    assert result.code == 1
    assert "docs/b.md was changed during the review; no file was written" in result.out
    assert fixable.call("resume", "one").code == 1
    fixable.write("docs/b.md", "It always works.\n")
    assert fixable.call("resume", "one").code == 0
    assert fixable.read("docs/b.md") == FIXED


def test_a_critique_never_becomes_the_text_of_a_file(review_project: ReviewProject) -> None:
    """A model that answers a request to fix with another review must not overwrite the file."""
    argv = ["printf", "%s", json.dumps({"overall": "FAIL", "issues": []})]
    agents = {
        "claude": {"kind": "command", "argv": argv},
        "critic": {"kind": "scripted", "file": ".signoff/script.json"},
    }
    review_project.write(".signoff/config.yaml", json.dumps({"version": 1, "agents": agents}))
    review_project.write(
        ".signoff/constraints/tone.yaml",
        "agents: [critic]\nrules:\n  - {id: sure, text: Promise nothing.}\n",
    )
    review_project.script(finds(issue("docs/b.md")))

    result = review_project.review("docs/b.md", "--fix", "--write")

    assert result.code != 0
    assert "the answer is a critique" in result.err + result.out
    assert review_project.read("docs/b.md") == "It always works.\n"


LINTER = """
import sys
text = open(sys.argv[1]).read().splitlines()
for number, line in enumerate(text, 1):
    if line == "    unused = 1":
        print(f"{sys.argv[1]}:{number}: F841 unused")
    if line == "    return missing":
        print(f"{sys.argv[1]}:{number}: F821 undefined")
"""
CODE = """def one():
    unused = 1
    return missing


def two():
    unused = 1
    return 2
"""


def test_what_is_dismissed_is_counted_in_the_files_as_they_are(
    review_project: ReviewProject,
) -> None:
    """A fix beside a dismissed passage changed what is around it, and it was counted twice."""
    project = review_project
    project.write("lint.py", LINTER)
    fix = "import sys; print(sys.stdin.read().split('<<<PREVIOUS')[1].split(chr(10), 1)[1]"
    fix += ".split('PREVIOUS ')[0].replace('return missing', 'return 2'), end='')"
    lint = {"kind": "check", "argv": [sys.executable, "lint.py", "{file}"], "constraint": "lint"}
    fixer = {"kind": "command", "argv": [sys.executable, "-c", fix]}
    agents = {"lint": {**lint, "severity": "HIGH"}, "fixer": fixer}
    project.write(".signoff/config.yaml", json.dumps({"version": 1, "agents": agents}))
    project.write(".signoff/constraints/tone.yaml", "id: lint\nsummary: No.\nagents: [lint]\n")
    project.write("code.py", CODE)
    found = project.review("code.py")
    (finding,) = {line[-13:-1] for line in found.out.splitlines() if "code.py:2: HIGH" in line}
    project.call("dismiss", finding, "--all-like", "--why", "Fine.")

    fixed = project.review("code.py", "--fix", "--fixer", "fixer", "--name", "two")
    by_hand = project.review(
        "code.py", "--fix", "--fixer", "manual", "--no-input", "--name", "three"
    )

    assert "lint/F821" in found.out
    assert "+    return 2\n" in fixed.out, fixed.out + fixed.err
    assert "lint/F841 is dismissed: 2 findings (Fine.)" in fixed.out
    assert "no open findings in 1 file, 2 dismissed" in fixed.out
    assert "manual work: Fix code.py" in by_hand.out
