"""Flow, goal and constraint files that are invalid or request something forbidden."""

import json

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import FINAL, FlowProject

FLOW = """\
max_iterations: 2
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge}
  - {step: refine, name: fix, loop_to: review}
"""
GOOD = (play.author_writes(FINAL), play.critics_pass(), play.judge_decides("APPROVED"))


def begin(flow_project: FlowProject, flow: str = FLOW) -> None:
    """Sets up a flow that is approved in its first iteration."""
    flow_project.write_flow(flow)
    flow_project.constraints("clear")
    flow_project.script(*GOOD)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("flow.yaml", "frobnicate: 1\n", "flow.yaml:7: unknown key 'frobnicate' (valid: "),
        (
            "flow.yaml",
            "default_behavior: {critical: stop}\n",
            "default_behavior.critical is 'stop' (one of: halt, continue, escalate, ignore)",
        ),
        ("goal.yaml", "sauce: 3\n", "goal.yaml:2: unknown key 'sauce' (did you mean 'source'?"),
        (
            ".signoff/constraints/clear.yaml",
            "priority: 2\n",
            'clear.yaml:6: found duplicate key "priority"',
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_a_suggestion(
    flow_project: FlowProject, file: str, text: str, message: str
) -> None:
    """Users can fix a mistyped key without looking it up."""
    begin(flow_project)
    path = flow_project.folder / file
    path.write_text(path.read_text() + text)

    run, checked = (
        flow_project.run(),
        flow_project.call("validate", "flow.yaml", "--goal", "goal.yaml"),
    )

    assert (run.code, checked.code, flow_project.calls) == (2, 2, [])
    assert message in run.err
    assert message in checked.out


def test_the_error_for_a_missing_goal_says_where_to_put_one(flow_project: FlowProject) -> None:
    """New users often forget it."""
    begin(flow_project)

    done = flow_project.call("run", "flow.yaml", "--name", "one")
    checked = flow_project.call("validate", "flow.yaml")
    complete = flow_project.call("validate", "flow.yaml", "--goal", "goal.yaml")

    assert (done.code, flow_project.calls) == (2, [])
    assert "--goal" in done.err
    assert checked.code == 0, "the goal of a flow that is used for several texts is given later"
    assert "there is no goal yet; a run needs one: the option `goal`" in checked.err
    assert complete.err == ""


def test_nothing_starts_if_an_agent_of_the_flow_is_not_ready(
    flow_project: FlowProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that fails in its third step has paid for two; a plan that cannot run is not valid."""
    begin(flow_project, FLOW.replace("name: draft", "name: draft, agent: anthropic"))
    goal = ("--goal", "goal.yaml")

    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    planned = flow_project.call("run", "flow.yaml", *goal, "--dry-run")
    as_json = flow_project.call("run", "flow.yaml", *goal, "--dry-run", "--json")
    started = flow_project.run()
    checked = flow_project.call("validate", "flow.yaml", *goal)
    pulled = flow_project.call("run", "flow.yaml", *goal, "--pull", "--name", "pulled")

    assert [each.code for each in (planned, as_json, started)] == [2, 2, 2]
    for each in (planned, started):
        assert "anthropic is not ready: ANTHROPIC_API_KEY" in each.err
        assert "signoff doctor" in each.err
    assert "Plan is valid" not in planned.out
    assert list(as_json.json["not_ready"]) == ["anthropic"], "the program claude is ready"
    assert (flow_project.calls, flow_project.run_dir.exists()) == ([], False)
    assert checked.code == 0, "CI checks files where no agent is installed"
    assert pulled.code == 10, "external workers do the work of all agents"


def test_sources_outside_the_project_are_never_read(flow_project: FlowProject) -> None:
    """A flow written by someone else must not send private files to a vendor."""
    begin(flow_project)
    outside = flow_project.folder.parent / f"{flow_project.folder.name}.md"
    outside.write_text("TOP SECRET")
    (flow_project.folder / "link.md").symlink_to(outside)
    paths = ["notes.txt", f"../{outside.name}", "link.md", str(outside)]
    source = {"files": paths, "globs": [f"../{outside.name}", "*.md"], "inline": "It is blue."}
    flow_project.write("notes.txt", "It is salty.")
    flow_project.write("goal.yaml", json.dumps({"goal": "Write about the sea.", "source": source}))

    refused = flow_project.run()
    checked = flow_project.call("validate", "flow.yaml", "--goal", "goal.yaml")
    assert (refused.code, checked.code, flow_project.calls) == (2, 2, [])
    for path in paths[1:]:
        message = f"flow.yaml: sources of the goal: {path}: "
        assert message in refused.err
        assert message in checked.out

    source = {**source, "files": ["notes.txt"]}
    flow_project.write("goal.yaml", json.dumps({"goal": "Write about the sea.", "source": source}))
    done = flow_project.run()

    asked = flow_project.read("iterations/1/prompt_generate_claude.txt")
    assert done.code == 0, done.err
    assert "It is salty." in asked
    assert "It is blue." in asked
    assert not any("TOP SECRET" in flow_project.read(name) for name in flow_project.names)
    for path in source["globs"]:
        assert f"warning: sources of the goal: {path}: " in done.err


def test_a_run_is_resumed_without_the_sources_it_has_recorded(flow_project: FlowProject) -> None:
    """Sources are read once; the user may delete them while the run waits."""
    begin(flow_project, FLOW.replace("name: judge", "name: judge, agent: manual"))
    flow_project.write("notes.txt", "It is salty.")
    flow_project.write("goal.yaml", "goal: Write.\nsource: {files: [notes.txt]}\n")

    waiting = flow_project.run()
    (flow_project.folder / "notes.txt").unlink()
    resumed = flow_project.call("resume", "one")
    again = flow_project.call("run", "flow.yaml", "--goal", "goal.yaml")

    assert (waiting.code, resumed.code) == (10, 10), resumed.err
    assert again.code == 2
    assert "notes.txt: no such file" in again.err


def test_scripts_run_only_when_they_are_allowed(flow_project: FlowProject) -> None:
    """A flow written by someone else must not run programs without permission."""
    begin(flow_project)
    flow_project.write("goal.yaml", "goal: Write.\nsource: {scripts: [sh facts.sh]}\n")
    flow_project.write("facts.sh", "echo ran >> ran.txt\necho It is salty.\n")
    flow_project.constraints("clear", clear="script: sh check.sh\n")
    flow_project.write("check.sh", "echo ran >> ran.txt\nwc -w\n")

    refused = flow_project.run()
    ran = (flow_project.folder / "ran.txt").exists()
    message = flow_project.read("iterations/1/prompt_generate_claude.txt")
    again = ("run", "flow.yaml", "--goal", "goal.yaml", "--name", "two", "--allow-scripts")
    allowed = flow_project.call(*again)

    assert (refused.code, ran) == (0, False), refused.err
    assert "scripts run only if the run allows them (allow_scripts)" in refused.err
    assert "It is salty." not in message
    assert allowed.code == 0, allowed.err
    two = flow_project.folder / ".signoff/runs/two/iterations/1"
    assert "It is salty." in (two / "prompt_generate_claude.txt").read_text()
    analysis = (two / "critiques/prompt_clear_claude.txt").read_text()
    assert "exit code 0" in analysis
    assert (flow_project.folder / "ran.txt").read_text() == "ran\nran\n"


def test_a_dry_run_tells_what_would_happen_and_starts_nothing(flow_project: FlowProject) -> None:
    """What it costs at most, and who would read what, is known before anything is paid."""
    begin(flow_project)
    flow_project.constraints("clear", "short")

    plain = flow_project.run("--dry-run")
    report = flow_project.run("--dry-run", "--json").json

    assert plain.code == 0, plain.err
    assert "at most 10 calls: 5 a round, 2 rounds" in plain.out
    assert "constraints clear, short" in plain.out
    assert report["calls"] == {"per_round": 5, "rounds": 2, "at_most": 10, "again_at_most": 6}
    (review,) = [step for step in report["plan"] if step["step"] == "review"]
    assert [each["constraint"] for each in review["asks"]] == ["clear", "short"]
    assert flow_project.calls == []
    assert not flow_project.run_dir.exists()


def test_patterns_that_match_nothing_are_warned_about(flow_project: FlowProject) -> None:
    """Otherwise a misspelled pattern would leave a constraint without a reviewer."""
    flow_project.write_flow(
        FLOW.replace("critique,", "critique, constraints: ['clear', 'legal*'],")
        + "constraints: {routing: {rules: [{match: 'secur*', agents: [claude]}]}}\n"
    )
    flow_project.constraints("clear", "other")

    plain = flow_project.call("validate", "flow.yaml", "--goal", "goal.yaml")
    report = flow_project.call("validate", "flow.yaml", "--goal", "goal.yaml", "--json").json

    assert plain.code == 0
    assert "flow.yaml:4: workflow[1].constraints[1]: 'legal*' matches no constraint" in plain.err
    assert [each["what"].partition(": ")[2] for each in report["warnings"]] == [
        "workflow[1].constraints[1]: 'legal*' matches no constraint",
        "constraints.routing.rules[0].match: 'secur*' matches no constraint",
        "no critique step reviews the artifact against 'other'",
    ]
    assert (report["valid"], report["problems"]) == (True, [])
    strict = flow_project.call("validate", "flow.yaml", "--goal", "goal.yaml", "--strict")
    assert strict.code == 2
    assert "'legal*' matches no constraint" in strict.out


READS = "artifact: {paths: [gone.md]}\nconstraints: {inline: {short: Be short.}}\n"
READS += "workflow: [{step: critique}, {step: adjudicate}, {step: refine}]\n"
BROKEN = {
    ".signoff/constraints/open.yaml": ("rules: [\n", "constraints/open.yaml:2: "),
    ".signoff/constraints/typo.yaml": ("rulez: []\n", "constraints/typo.yaml:1: unknown key"),
    ".signoff/constraints/set/who.yaml": ("summary: x\nagents: [nobody]\n", "unknown agent"),
    ".signoff/constraints/set2/facts.yaml": (
        "summary: x\nsource: {files: [gone.md]}\n",
        "sources of facts: gone.md: no such file",
    ),
    ".signoff/decisions.yaml": ("decisions: 3\n", "decisions is not a list"),
    ".signoff/flows/read.yaml": (READS, "read.yaml: there is no file or folder 'gone.md'"),
}
"""Files of a project that a review or a flow would read: the text, and what is wrong with it."""


def test_validate_reports_every_broken_file_that_reviews_and_flows_would_read(
    flow_project: FlowProject,
) -> None:
    """A project without flows has nothing but constraints, and its reviews were refused later."""
    for path, (text, _problem) in BROKEN.items():
        flow_project.write(path, text)

    checked = flow_project.call("validate")

    assert checked.code == 2
    assert [p for _, p in BROKEN.values() if p not in checked.out] == []
    for path in BROKEN:
        (flow_project.folder / path).unlink()
    assert flow_project.call("validate").code == 0


def test_the_programs_of_allowed_scripts_are_checked_before_a_run(
    flow_project: FlowProject,
) -> None:
    """A missing one failed the run after its draft was paid for."""
    begin(flow_project)
    source = "script: ./gone.sh\nsource: {scripts: [./gone-too.sh]}\n"
    flow_project.constraints("clear", clear=source)
    goal = ("--goal", "goal.yaml")

    assert flow_project.call("validate", "flow.yaml", *goal).code == 0
    checked = flow_project.call("validate", "flow.yaml", "--allow-scripts", *goal)
    started = flow_project.run("--allow-scripts")

    assert (checked.code, started.code, flow_project.calls) == (2, 2, [])
    assert "script of clear: there is no program './gone.sh'" in checked.out
    assert "sources of clear: ./gone-too.sh: no such program" in checked.out


def test_both_sides_of_an_agent_replacement_are_checked(
    flow_project: FlowProject, subtests: pytest.Subtests
) -> None:
    """A misspelled name replaced no one, so the run asked the agent it was to leave alone."""
    begin(flow_project)
    goal = ("--goal", "goal.yaml")
    for command in (["validate", "flow.yaml"], ["run", "flow.yaml", "--dry-run"]):
        for agent, code in {
            "cluade=manual": 2,
            "claude=manuel": 2,
            "manuel": 2,
            "claude=manual": 0,
            "manual": 0,
        }.items():
            with subtests.test(command=command[0], agent=agent):
                done = flow_project.call(*command, *goal, "--agent", agent)

                assert done.code == code, done.out + done.err
                assert ("unknown agent" in done.out + done.err) == (code == 2)

    unused = flow_project.call("run", "flow.yaml", *goal, "--agent", "ollama=manual", "--dry-run")

    assert "--agent ollama=manual has no effect: this run does not ask ollama" in unused.err
