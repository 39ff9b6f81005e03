"""A change cannot switch off its own review: from the base, nothing of it is trusted."""

from __future__ import annotations

import pytest

from tests.acceptance.review_project import ReviewProject, finds, issue

BAD = "It never fails.\n"
CHECK = """
import sys
print("stdin:1: base's program ran") if "never" in sys.stdin.read() else None
sys.exit(1)
"""
SETTINGS = """version: 1
agents:
  claude: {kind: scripted, file: SCRIPT}
  check: {kind: check, argv: [python3, tools/check.py], findings: lines}
"""


@pytest.fixture
def change(review_project: ReviewProject) -> ReviewProject:
    """A branch with a bad page; whoever wrote it would rather not have it reviewed."""
    script = str(review_project.folder / ".signoff/script.json")
    review_project.write(".signoff/config.yaml", SETTINGS.replace("SCRIPT", script))
    review_project.commit("settings")
    review_project.git("checkout", "-q", "-b", "topic")
    review_project.write("docs/new.md", BAD)
    review_project.script(finds(issue("docs/new.md", "It never fails."), contains="docs/new.md"))
    return review_project


def review(project: ReviewProject, *more: str) -> tuple[int, str]:
    result = project.review("--diff", "main", *more)
    return result.code, result.out + result.err


def test_the_plain_change_is_found(change: ReviewProject) -> None:
    assert review(change, "--config-from", "base")[0] == 17


ATTACKS = {
    "the rule is removed": {
        ".signoff/constraints/tone.yaml": "summary: Anything goes.\npaths: [x]\n"
    },
    "another constraint replaces it": {
        ".signoff/constraints/tone.yaml": "id: nice\nsummary: Nice.\n"
    },
    "the agent is replaced": {
        ".signoff/config.yaml": "version: 1\nagents: {claude: {kind: command, argv: [true]}}\n"
    },
    "the file is ignored": {".signoffignore": "docs/\n"},
    "the file is called generated": {".gitattributes": "docs/* linguist-generated\n"},
    "the file calls itself generated": {"docs/new.md": f"<!-- Generated. Do not edit. -->\n{BAD}"},
    "a comment ignores the rule": {"docs/new.md": f"<!-- signoff: ignore tone fine -->\n{BAD}"},
    "a module of Python is shadowed": {
        "difflib.py": "raise SystemExit(0)\n",
        "rapidfuzz/__init__.py": "raise SystemExit(0)\n",
        "pathspec.py": "raise SystemExit(0)\n",
    },
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_change_cannot_switch_off_its_review(change: ReviewProject, attack: str) -> None:
    for path, text in ATTACKS[attack].items():
        change.write(path, text)
    change.commit(attack)

    code, out = review(change, "--config-from", "base")

    assert code == 17, out
    assert "docs/new.md" in out


COMMENT = "<!-- signoff: ignore tone fine -->\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{COMMENT}It ends.\n\nMore.\n\n{COMMENT}{BAD}",
        f"It ends.\n\nMore.\n\n{COMMENT}{BAD}",
        f"{COMMENT}{BAD}It ends.\n\nMore.\n",
    ],
    ids=["copied", "moved", "used for another line"],
)
def test_a_comment_of_the_base_is_about_the_lines_of_the_base(
    change: ReviewProject, text: str
) -> None:
    change.git("checkout", "-q", "main")
    change.write("docs/old.md", f"{COMMENT}It ends.\n\nMore.\n")
    change.commit("old")
    change.git("checkout", "-q", "-b", "other")
    change.write("docs/old.md", text)
    change.commit("worse")
    change.script(finds(issue("docs/old.md", "It never fails."), contains="docs/old.md"))

    code, out = review(change, "--config-from", "base")

    assert code == 17, out


def test_a_decision_of_the_change_does_not_count(change: ReviewProject) -> None:
    review(change, "--config-from", "base")
    (finding,) = change.call("show", "one", "--json").json["findings"]
    change.call("dismiss", finding["id"], "--why", "because")
    change.commit("decide")

    assert review(change, "--config-from", "base", "--name", "two")[0] == 17
    code, out = review(change, "--config-from", "worktree", "--name", "three")
    assert code == 0, out


def test_programs_are_those_of_the_base(change: ReviewProject) -> None:
    """A check that the change replaces would run the attacker's code, and pass."""
    change.commit("page")
    change.git("checkout", "-q", "main")
    change.write("tools/check.py", CHECK)
    change.write(".signoff/constraints/tone.yaml", "summary: Tone.\nagents: [check]\n")
    change.commit("check")
    change.git("checkout", "-q", "topic")
    change.git("rebase", "-q", "main")
    change.write("tools/check.py", "open('hacked', 'w')\n")
    change.commit("replace the check")

    code, out = review(change, "docs", "--config-from", "base")

    assert code == 17, out
    assert "base's program ran" in out
    assert not list(change.folder.rglob("hacked"))


def test_in_ci_the_base_is_the_default(
    change: ReviewProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    change.write(".signoff/constraints/tone.yaml", "id: nice\nsummary: Anything goes.\n")
    change.commit("loosen the rule")
    change.script(finds(issue("docs/new.md", "It never fails."), key="tone"))

    assert review(change)[0] == 0
    monkeypatch.setenv("CI", "true")
    assert review(change, "--name", "two")[0] == 17


@pytest.mark.parametrize("more", [("--fix", "--write"), ("--baseline",)])
def test_what_changes_the_project_is_not_for_the_base(
    change: ReviewProject, more: tuple[str, ...]
) -> None:
    assert review(change, "--config-from", "base", *more)[0] == 2


def test_a_base_without_settings_has_none(review_project: ReviewProject) -> None:
    """Those of the change must not be found in a folder further up."""
    review_project.git("rm", "-rq", "--cached", ".signoff")
    review_project.git("commit", "-qm", "no settings")
    review_project.write("docs/new.md", BAD)

    result = review_project.review("--diff", "main", "--config-from", "base")

    assert result.code == 2
    assert "there are no constraints" in result.err


def test_the_projects_tests_are_not_run_on_a_change_that_is_not_trusted(
    change: ReviewProject,
) -> None:
    """Tests execute the change, which could read the keys of the pipeline."""
    (change.folder / "docs/new.md").unlink()
    change.git("checkout", "-q", "main")
    settings = change.read(".signoff/config.yaml")
    check = "  tests: {kind: check, argv: [sh, docs/new.md], scope: project, findings: exit}\n"
    change.write(".signoff/config.yaml", settings + check)
    change.write(".signoff/constraints/passing.yaml", "summary: Passes.\nagents: [tests]\n")
    change.commit("tests")
    change.git("checkout", "-q", "topic")
    change.git("reset", "-q", "--hard", "main")
    change.write("docs/new.md", f"touch {change.folder}/executed # It never fails.\n")

    code, output = review(change, "--config-from", "base")

    assert code == 17
    assert "passing is not checked" in output
    assert not (change.folder / "executed").exists()
