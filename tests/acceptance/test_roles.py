"""Who may write and who may review: a critic never becomes the author by accident."""

from __future__ import annotations

import json
import sys

from tests.acceptance.review_project import SETTINGS, ReviewProject, finds, issue

CRITIC = """\
import json, pathlib, sys
asked = sys.stdin.read()
log = pathlib.Path({{log!r}})
log.write_text(log.read_text() + asked if log.exists() else asked)
print(json.dumps({{"overall": "PASS", "issues": []}}))
"""
OWN = "agents: [{agent}]\nrules:\n  - {{id: sure, text: Promise nothing.}}\n"


def add_program(project: ReviewProject, *, settings: str = "version: 1\nagents:\n") -> None:
    """Adds a program that is set up as the critic of one constraint."""
    script = project.folder / "critic.py"
    project.write("critic.py", CRITIC.format(log=str(project.folder / "asked.txt")))
    argv = json.dumps([sys.executable, str(script)])
    project.write(".signoff/config.yaml", f"{settings}  spell: {{kind: command, argv: {argv}}}\n")
    project.write(".signoff/constraints/tone.yaml", OWN.format(agent="spell"))


def test_a_program_that_reviews_is_never_chosen_to_fix(review_project: ReviewProject) -> None:
    """Through `auto`, a spell checker got the files to fix when no model was ready."""
    add_program(review_project)

    done = review_project.review("docs/a.md", "--fix")

    assert done.code == 2
    assert "fix: auto (the default agent)" in done.err
    assert "never chosen unless named: spell" in done.err
    assert "--fixer manual" in done.err
    assert not (review_project.folder / "asked.txt").exists()


def test_another_agent_fixes_than_reviews(review_project: ReviewProject) -> None:
    second = "  other: {kind: scripted, file: .signoff/other.json}\n"
    review_project.write(".signoff/config.yaml", SETTINGS + second)
    review_project.script(finds(issue("docs/b.md"), times=1))
    fixed = {"step": "fix", "text": "ok", "files": {"b.md": "It works most of the time.\n"}}
    review_project.write(".signoff/other.json", json.dumps({"version": 1, "rules": [fixed]}))

    plan = review_project.review("docs/b.md", "--fix", "--fixer", "other", "--dry-run")
    done = review_project.review("docs/b.md", "--fix", "--fixer", "other")

    assert "fix: other fixes (the step's agent)" in plan.out
    assert done.code == 17, done.err
    assert "most of the time" in done.out


def test_a_fixer_needs_something_to_fix(review_project: ReviewProject) -> None:
    done = review_project.review("docs/b.md", "--fixer", "other")

    assert done.code == 2
    assert "add --fix" in done.err


def test_an_agent_that_a_constraint_names_reviews_it(review_project: ReviewProject) -> None:
    """`--agent` is for the rest: someone chose that critic for that constraint."""
    second = "  other: {kind: scripted, file: .signoff/script.json}\n"
    review_project.write(".signoff/config.yaml", SETTINGS + second)
    review_project.write(".signoff/constraints/tone.yaml", OWN.format(agent="claude"))
    review_project.write(".signoff/constraints/rest.yaml", "rules: [{id: a, text: Be brief.}]\n")

    plan = review_project.review("docs/b.md", "--agent", "other", "--dry-run")

    assert "claude reviews tone (the constraint's own agents)" in plan.out
    assert "other reviews rest" in plan.out


def test_the_log_says_that_a_critic_also_fixes(review_project: ReviewProject) -> None:
    review_project.write(".signoff/constraints/tone.yaml", OWN.format(agent="claude"))
    review_project.script(
        finds(issue("docs/b.md"), times=1),
        {"step": "fix", "text": "ok", "files": {"b.md": "It works mostly.\n"}},
    )

    done = review_project.review("docs/b.md", "--fix")

    assert done.code == 17, done.err
    assert "claude fixes what it reviewed itself: tone" in done.err


COUNTED = """\
import os, pathlib, sys, time
folder = pathlib.Path("{folder}")
mine = folder / str(os.getpid())
mine.touch()
(folder / "most" / str(len(list(folder.glob("[0-9]*"))))).touch()
time.sleep(0.3)
mine.unlink()
"""


def test_a_program_runs_at_most_eight_times_at_once(review_project: ReviewProject) -> None:
    """Forty constraints started forty processes."""
    folder = review_project.folder / "counted"
    (folder / "most").mkdir(parents=True)
    review_project.write("count.py", COUNTED.format(folder=folder))
    argv = json.dumps([sys.executable, "count.py"])
    count = f"  count: {{kind: check, argv: {argv}, findings: exit}}\n"
    review_project.write(".signoff/config.yaml", SETTINGS + count)
    review_project.script({"step": "draft", "text": "Fine.\n"})
    rules = {f"c{number}": "It is fine." for number in range(20)}
    steps = [
        {"step": "generate", "name": "draft"},
        {"step": "critique", "name": "review", "agent": "count"},
        {"step": "adjudicate", "name": "judge", "agent": "policy"},
    ]
    flow = {"goal": "A word.", "constraints": {"inline": rules}, "workflow": steps}
    review_project.write("flow.yaml", json.dumps(flow))

    done = review_project.call("run", "flow.yaml")

    assert done.code == 0, done.err
    assert max(int(each.name) for each in (folder / "most").iterdir()) <= 8
