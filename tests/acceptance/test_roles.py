"""Who may write and who may review: a critic never becomes the author by accident."""

from __future__ import annotations

import json
import sys

import pytest

from tests.acceptance.review_project import SETTINGS, ReviewProject, finds, issue

DRY = ("--dry-run",)

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
    assert "auto is not ready" in done.err
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


CHECK = "  words: {kind: check, argv: [cat], findings: lines}\n"
STEPS = """\
goal: A word.
constraints: {{inline: {{c: {{summary: It is fine., agents: [{critic}]}}}}}}
workflow:
  - {{step: generate, name: draft{writer}}}
  - {{step: critique, name: review}}
  - {{step: adjudicate, name: judge, agent: {judge}}}
"""


def write_flow(project: ReviewProject, critic: str = "claude", **agents: str) -> None:
    """Writes a flow whose steps have these agents, beside agents that write and that check."""
    second = "  other: {kind: scripted, file: .signoff/script.json}\n"
    project.write(".signoff/config.yaml", SETTINGS + second + CHECK)
    project.script({"step": "draft", "text": "Fine.\n"})
    writer = f", agent: {agents['writer']}" if "writer" in agents else ""
    judge = agents.get("judge", "policy")
    project.write("flow.yaml", STEPS.format(critic=critic, writer=writer, judge=judge))


def test_run_replaces_no_agent_that_a_constraint_names(review_project: ReviewProject) -> None:
    """Not even if it has the name of the agent that is asked where none is named."""
    write_flow(review_project)

    done = review_project.call("run", "flow.yaml", "--agent", "other", "--name", "one")
    again = review_project.call("run", "--again", "one", "--dry-run", "--json")

    assert done.code == 0, done.err
    assert "draft: other answered" in done.err
    assert "c: passed by claude" in done.err
    for step in again.json["plan"][:2]:
        assert step["agents"] == ["other" if step["step"] == "draft" else "claude"]


UNFIT: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "flow.yaml:4: step 'draft': the agent 'words' only checks": ({"writer": "words"}, ()),
    "flow.yaml:6: step 'judge': the agent 'words' only checks": ({"judge": "words"}, ()),
    "step 'draft': the agent 'words' only checks": ({}, ("--agent", "words")),
    "words cannot be asked: it only checks": ({"writer": "claude"}, ("--agent", "claude=words")),
    "'local', a model that is too small to review": ({"critic": "local"}, ()),
    "flow.yaml:6: workflow[2].agent is 'local', a model": ({"judge": "local"}, ()),
    "local cannot be asked: it is too small": ({}, ("--agent", "claude=local")),
}
"""By its error, the agents that a flow names, and the options of its run."""


def test_an_agent_is_refused_for_what_its_kind_cannot_do(
    review_project: ReviewProject, subtests: pytest.Subtests
) -> None:
    """A check answers a request to write with a critique, which would become the text."""
    for error, (agents, options) in UNFIT.items():
        with subtests.test(error):
            write_flow(review_project, **agents)

            tried = [review_project.call("run", "flow.yaml", *options, *more) for more in ((), DRY)]
            if not options:
                tried.append(review_project.call("validate", "flow.yaml"))

            for done in tried:
                assert done.code == 2
                assert error in done.out + done.err
    assert review_project.call("runs", "--json").json == []


def test_a_run_is_not_continued_with_a_check_that_would_write(
    review_project: ReviewProject,
) -> None:
    write_flow(review_project, writer="manual")
    waiting = review_project.call("run", "flow.yaml", "--name", "one", "--no-input")

    done = review_project.call("resume", "one", "--agent", "manual=words", "--no-input")

    assert waiting.code == 10
    assert done.code == 2
    assert "words cannot be asked: it only checks and cannot write" in done.err


COUNTED = """\
import os, pathlib
folder = pathlib.Path("{folder}")
mine = folder / str(os.getpid())
mine.touch()
at_once = len(list(folder.glob("[0-9]*")))
(folder / "most" / str(at_once)).touch()
# The first processes stay until as many as may run at once are there, so none comes too late.
while at_once < 8 and not (folder / "full").exists():
    at_once = len(list(folder.glob("[0-9]*")))
(folder / "most" / str(at_once)).touch()
(folder / "full").touch()
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
    assert max(int(each.name) for each in (folder / "most").iterdir()) == 8
