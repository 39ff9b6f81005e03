"""What a flow's run leaves in `final/` when it ends without passing, by every way it can end."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.cli_project import CommandResult
from tests.acceptance.flow_project import DRAFT, FINAL, FlowProject

STEPS = (
    "workflow:\n"
    "  - {step: generate}\n"
    "  - {step: critique, name: review}\n"
    "  - {step: adjudicate, name: judge, agent: policy}\n"
    "  - {step: refine, loop_to: review}\n"
)
ASKS_A_HUMAN = f"convergence: {{plateau: 1, action: escalate}}\n{STEPS}"
ESCALATES = f"default_behavior: {{high: escalate}}\n{STEPS}"
START = "signoff run --again one"
RESUME = "signoff resume one"
RAISE = f"{RESUME} --limit calls=NUMBER"
FIXED_LOOP = "constraints: {routing: {default_agents: [claude]}}\n"


def prepare(project: FlowProject, flow: str = STEPS, *more: dict[str, Any]) -> None:
    """Sets up a flow whose critic finds one issue in every version; `more` takes precedence."""
    project.write_flow(flow)
    project.constraints("clear")
    project.script(
        *more,
        play.author_writes(),
        play.critic_finds("clear", play.issue(evidence="wide", suggested_fix="Say how wide.")),
        play.judge_decides("REWRITE", bill="Fix it."),
        play.editor_replaces(),
    )


def result_of(project: FlowProject) -> dict[str, Any]:
    """Returns the result in the JSON output, with its path relative to the run directory."""
    result: dict[str, Any] = project.call("show", "one", "--json").json["result"]
    folder = f"{project.run_dir.resolve()}/"
    assert result["path"].startswith(folder), result
    return {**result, "path": result["path"].removeprefix(folder)}


def budget(project: FlowProject) -> CommandResult:
    """Spends the last call on the second review."""
    prepare(project)
    return project.run("--limit", "calls=4")


def failure(project: FlowProject) -> CommandResult:
    """Lets the second review fail."""
    broken = {"step": "critique", "code": 3, "stderr": "no such model", "contains": FINAL}
    prepare(project, STEPS, broken)
    return project.run()


def round_limit(project: FlowProject) -> CommandResult:
    """Reaches the limit."""
    prepare(project, f"max_iterations: 2\n{STEPS}")
    return project.run()


def no_convergence(project: FlowProject) -> CommandResult:
    """Gives up after two rounds with the same number of findings."""
    prepare(project, f"convergence: {{plateau: 1, action: stop}}\n{STEPS}")
    return project.run()


def human_stop(project: FlowProject) -> CommandResult:
    """Asks a human at the limit, who stops the run."""
    trigger = "adjudication: {escalation: {triggers: [max_iterations]}}\n"
    prepare(project, f"max_iterations: 2\n{STEPS}{trigger}")
    waiting = project.run()
    assert waiting.code == 10, waiting.err
    assert project.read("final/status.md").startswith("# Has not passed review\n\n2 rounds without")
    return project.call("answer", "one", "stop", "--text", "enough", "--resume")


def cancellation(project: FlowProject) -> CommandResult:
    """Cancels a run that waits for a human."""
    prepare(project, ASKS_A_HUMAN)
    assert project.run().code == 10
    cancelled = project.call("cancel", "one")
    assert cancelled.code == 0
    assert "best so far: .signoff/runs/one/final/artifact.md" in cancelled.out
    return project.call("resume", "one")


def fixed_loop_budget(project: FlowProject) -> CommandResult:
    """Spends the fifth call, the second review, of the fixed loop."""
    prepare(project, FIXED_LOOP)
    return project.run("--limit", "calls=5")


@pytest.mark.parametrize(
    ("end", "code", "why", "commands"),
    [
        (budget, 12, "The run's limit of 4 calls is reached.", [RAISE]),
        (failure, 1, "Failed in step 'review': ", [RESUME, f"{RESUME} --adopt"]),
        (
            round_limit,
            11,
            "2 rounds without passing; the last fix changed nothing.",
            [f"{RESUME} --adopt"],
        ),
        (no_convergence, 13, "Not converging (plateau): ", [START]),
        (human_stop, 14, "Stopped by ", [START]),
        (cancellation, 15, "Cancelled: by the user.", [START]),
        (fixed_loop_budget, 12, "The run's limit of 5 calls is reached.", [RAISE]),
    ],
)
def test_every_end_without_approval_leaves_the_best_reviewed_version(
    flow_project: FlowProject, end: Any, code: int, why: str, commands: list[str]
) -> None:
    """A user who paid for two rounds gets the better text, what is wrong and how to continue."""
    done = end(flow_project)

    assert done.code == code, done.err
    assert flow_project.read("final/artifact.md") in (DRAFT, FINAL)
    status = flow_project.read("final/status.md")
    assert status.startswith(f"# Has not passed review\n\n{why}")
    assert "  - quote: wide\n  - suggested fix: Say how wide.\n" in status
    _, _, section = status.partition("\n## To continue\n\n")
    assert [line.partition(": ")[2] for line in section.splitlines()] == commands
    assert all(line.removeprefix("- ")[1:] in done.out for line in section.splitlines())
    result = result_of(flow_project)
    assert (result["path"], result["passed"]) == ("final/artifact.md", False)
    assert (result["reviewed"], result["open"]) == (True, {"HIGH": 1})
    version = f"best reviewed version (round {result['round']}; open: 1 HIGH)"
    shown = flow_project.call("show", "one").out
    assert f"has not passed review: {version}" in shown
    assert "  details: .signoff/runs/one/final/status.md\n" in shown
    kept = {name: flow_project.read(name) for name in flow_project.names if "final/" in name}
    shutil.rmtree(flow_project.run_dir)
    flow_project.call("show", "one")
    assert {name: flow_project.read(name) for name in kept} == kept
    if commands == [START]:
        # `resume --adopt` after a changed rule would otherwise just print the old result.
        resumed = flow_project.call("resume", "one", "--adopt")
        assert resumed.code == code
        assert "this run has ended; start a new one: signoff run --again one" in resumed.out


def test_remaining_work_is_that_of_the_version_in_the_file(flow_project: FlowProject) -> None:
    """The last round made it worse: its findings are not those of the version to use."""
    prepare(
        flow_project,
        f"convergence: {{plateau: 1, action: stop}}\n{STEPS}",
        play.critic_finds(
            "clear", play.issue(evidence="sea"), play.issue(evidence="is"), contains=FINAL
        ),
    )

    done = flow_project.run()

    assert done.code == 13, done.err
    assert flow_project.read("final/artifact.md") == DRAFT
    assert flow_project.read("final/artifact_latest.md") == FINAL
    status = flow_project.read("final/status.md")
    assert "`artifact_latest.md` is the latest version, which was reviewed, too." in status
    _, _, work = status.partition("## Remaining work")
    assert [line for line in work.splitlines() if "quote" in line] == ["  - quote: wide"]
    shown = flow_project.call("show", "one").out
    for out in (done.out, shown):
        assert "latest version, reviewed, too: .signoff/runs/one/final/artifact_latest.md" in out
    assert "open findings of the best version (round 1): 1\n" in shown
    assert "open findings of the latest review: 3\n" in shown
    result = result_of(flow_project)
    assert result["open"] == {"HIGH": 1}
    assert result["latest"].endswith("final/artifact_latest.md")
    assert result["unreviewed"] is None


def test_the_result_follows_the_run_from_an_unread_draft_to_an_approval(
    flow_project: FlowProject,
) -> None:
    """An older version must not look like the result, nor an approval like a failure."""
    misspelled = play.critic_finds("clear", play.issue(evidence="see"))
    prepare(flow_project, STEPS, play.critics_pass(contains=FINAL), misspelled)

    unread = flow_project.run("--limit", "calls=1")

    assert unread.code == 12, unread.err
    assert flow_project.read("final/artifact.md") == DRAFT
    assert "`artifact.md` was not reviewed." in flow_project.read("final/status.md")
    result = result_of(flow_project)
    assert (result["reviewed"], result["round"], result["open"]) == (False, None, None)
    assert "has not passed review: latest draft, not reviewed" in unread.out

    newer = flow_project.call("resume", "one", "--limit", "calls=3")

    assert newer.code == 12, newer.err
    unreviewed = "latest version, not reviewed: .signoff/runs/one/final/artifact_latest.md"
    assert unreviewed in newer.out
    # The wording changes between versions of signoff; a kept report would deny the approval.
    reworded = flow_project.run_dir / "final/status.md"
    reworded.write_text("# Has not passed review\n\nin other words\n")
    assert unreviewed in flow_project.call("show", "one").out
    assert "The run's limit of 3 calls is reached.\n" in reworded.read_text()
    result = result_of(flow_project)
    assert result["latest"] == result["unreviewed"]
    assert result["unreviewed"].endswith("final/artifact_latest.md")
    reworded.write_text("# Has not passed review\n\nin other words\n")

    done = flow_project.call("resume", "one", "--limit", "calls=9")

    assert done.code == 0, done.err
    assert {name for name in flow_project.names if "final/" in name} == {"final/artifact.md"}
    assert flow_project.read("final/artifact.md") == FINAL
    result = result_of(flow_project)
    assert (result["passed"], result["reviewed"], result["open"]) == (True, True, {})
    assert "result: .signoff/runs/one/final/artifact.md" in done.out


@pytest.mark.parametrize(
    ("flow", "why"),
    [
        (ASKS_A_HUMAN, "Not converging"),
        (
            "max_iterations: 1\nadjudication: {escalation: {triggers: [max_iterations]}}\n" + STEPS,
            "1 round without passing",
        ),
    ],
)
def test_the_question_whether_to_continue_shows_the_best_version(
    flow_project: FlowProject, flow: str, why: str
) -> None:
    """The human who decides about more rounds has to see what they would start from."""
    prepare(flow_project, flow)

    done = flow_project.run()

    assert done.code == 10, done.err
    assert flow_project.read("final/artifact.md") in (DRAFT, FINAL)
    status = flow_project.read("final/status.md")
    asks = f"# Has not passed review\n\n{why}: you decide whether it continues."
    assert status.startswith(f"{asks}\n\n`artifact.md` is")
    assert "  - quote: wide\n" in status
    # The question has the same list, without quotes and suggested fixes.
    assert status.count("It is wrong.") == result_of(flow_project)["open"]["HIGH"] == 1


def test_a_run_that_continues_no_longer_looks_ended(flow_project: FlowProject) -> None:
    """The limit was raised: status.md must not report it while the run waits for an answer."""
    prepare(flow_project, ESCALATES)
    stopped = flow_project.run("--limit", "calls=1")
    left = {name for name in flow_project.names if name.startswith("final/")}

    waiting = flow_project.call("resume", "one", "--limit", "calls=9")

    assert (stopped.code, waiting.code) == (12, 10), waiting.err
    assert left == {"final/artifact.md", "final/status.md"}
    assert not [name for name in flow_project.names if name.startswith("final/")]
    assert flow_project.call("show", "one", "--json").json["result"] is None


def test_a_run_is_cancelled_once(flow_project: FlowProject) -> None:
    """The second time there was nothing to cancel, and an ended run is named in words."""
    done = no_convergence(flow_project)
    refused = flow_project.call("cancel", "one")
    flow_project.call(
        "run", "flow.yaml", "--goal", "goal.yaml", "--name", "two", "--limit", "calls=1"
    )

    cancelled = [flow_project.call("cancel", "two") for _ in range(2)]

    assert (done.code, refused.code) == (13, 2)
    assert "run 'one' has already ended: not converging" in refused.err
    assert [each.out.partition("\n")[0] for each in cancelled] == [
        "cancelled  two",
        "already cancelled  two",
    ]
    assert [each.code for each in cancelled] == [0, 0]


def test_critiques_of_an_unfinished_review_are_shown(flow_project: FlowProject) -> None:
    """They were paid for, and help to finish the text by hand."""
    serial = STEPS.replace("name: review", "name: review, execution: serial")
    prepare(flow_project, serial)
    flow_project.constraints("short", "clear", "late")
    found = play.issue(
        "MEDIUM", "wide", finding="Too long.", suggested_fix="Cut it.", location="line 1"
    )
    flow_project.script(
        play.author_writes(), play.critic_finds("short", found), play.critics_pass()
    )

    done = flow_project.run("--limit", "calls=3")

    assert done.code == 12, done.err
    status = flow_project.read("final/status.md")
    where = "it had 2 critiques with 1 issue, in `iterations/1/critiques`"
    assert f"Step 'review' did not finish; {where}." in status
    found_issue = flow_project.load("iterations/1/critiques/short-claude.json")["issues"][0]
    assert (found_issue["finding"], found_issue["suggested_fix"]) == ("Too long.", "Cut it.")
    assert f"step 'review' did not finish; {where}" in flow_project.call("show", "one").out
    unfinished = result_of(flow_project)["unfinished"]
    assert [each["constraint_id"] for each in unfinished] == ["short", "clear"]

    resumed = flow_project.call("resume", "one", "--limit", "calls=9")

    assert resumed.code == 0, resumed.err
    assert "unfinished" not in result_of(flow_project)
    assert "final/status.md" not in flow_project.names
