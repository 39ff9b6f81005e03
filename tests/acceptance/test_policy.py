"""`signoff policy` on a run that programs have played."""

from collections.abc import Iterator

import pytest

from tests.acceptance.command_server import CommandServer
from tests.acceptance.flow_project import (
    DRAFT,
    FlowProject,
    author_writes,
    critic_finds,
    critics_pass,
    editor_replaces,
    issue,
    judge_decides,
)

FLOW = """
max_iterations: 2
default_behavior: {medium: escalate}
constraint_behaviors: {"to*": {medium: continue}}
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge}
  - {step: refine, name: fix, loop_to: review}
"""


@pytest.fixture(scope="module")
def played(
    tmp_path_factory: pytest.TempPathFactory, command_server: CommandServer
) -> Iterator[FlowProject]:
    """One round of work and an approval, with a finding for each level."""
    with pytest.MonkeyPatch.context() as patch:
        flow_project = FlowProject(tmp_path_factory.mktemp("policy"), command_server, patch)
        flow_project.write_flow(FLOW)
        flow_project.constraints("clear", "tone", clear="behavior: {low: halt}\n")
        low = issue("LOW", "wide", finding="Too wide.")
        flow_project.script(
            author_writes(),
            critic_finds("clear", issue("HIGH", finding="Misspelt."), low, contains=DRAFT),
            critic_finds("tone", issue("MEDIUM", finding="Rude."), contains=DRAFT),
            critics_pass(),
            judge_decides("REWRITE", bill="Mend it.", contains=DRAFT),
            judge_decides("APPROVED"),
            editor_replaces(),
        )
        done = flow_project.run()
        assert done.code == 0, done.err
        yield flow_project


def finding(flow_project: FlowProject, words: str) -> str:
    """Returns the id of a finding."""
    entries = flow_project.load("state.json")["findings"]["entries"]
    (found,) = [each["id"] for each in entries if each["finding"] == words]
    return str(found)


@pytest.mark.parametrize(
    ("words", "behavior", "level"),
    [
        ("Misspelt.", "halt", "the built-in default"),
        ("Too wide.", "halt", "the constraint's own file"),
        ("Rude.", "continue", "constraint_behaviors of the flow"),
    ],
)
def test_explain_tells_which_level_decided(
    played: FlowProject, words: str, behavior: str, level: str
) -> None:
    """Whoever wonders why a finding did something has four places to look."""
    told = played.call("policy", "explain", "one", finding(played, words))
    said = played.call("policy", "explain", "one", finding(played, words), "--json").json

    assert told.code == 0, told.err
    assert f"{behavior}: {level} says so" in told.out
    assert "new in 1, fixed in 2" in told.out
    assert (said["behavior"], said["decided_by"]) == (behavior, level)


def test_replay_recomputes_a_run_without_one_call(played: FlowProject) -> None:
    """A policy is tried on yesterday's runs, not on tomorrow's money."""
    calls = len(played.calls)
    played.write(
        "other.yaml", "constraint_behaviors: {}\nadjudication: {approval: {block_on: []}}\n"
    )

    told = played.call("policy", "replay", "one", "--policy", "other.yaml")
    said = played.call("policy", "replay", "one", "--policy", "other.yaml", "--json").json

    assert told.code == 0, told.err
    assert len(played.calls) == calls
    assert "1 of 3 issues would do something else" in told.out
    assert "from iteration 1, step review" in told.out
    (changed,) = [each for each in said["issues"] if each["changed"]]
    assert (changed["constraint"], changed["was"], changed["now"]) == (
        *("tone", "continue"),
        "escalate",
    )
    assert [each["was"] for each in said["verdicts"]] == ["REWRITE", "APPROVED"]


def test_a_policy_that_is_wrong_is_refused_with_its_line(played: FlowProject) -> None:
    """A misspelt behaviour must not be answered with `nothing would change`."""
    played.write("wrong.yaml", "default_behavior: {low: kontinue}\n")

    done = played.call("policy", "replay", "one", "--policy", "wrong.yaml")

    assert (done.code, done.out) == (2, "")
    assert "wrong.yaml:1: default_behavior.low is 'kontinue' (one of: halt, " in done.err


def test_a_finding_nobody_knows_is_answered_with_those_there_are(played: FlowProject) -> None:
    """The ids are long, and one copies them wrong."""
    done = played.call("policy", "explain", "one", "nothing")

    assert done.code == 2
    assert finding(played, "Rude.") in done.err


def test_explain_without_a_finding_lists_them_all(played: FlowProject) -> None:
    """Whoever wants one explained has to find its id first, of fixed ones, too."""
    done = played.call("policy", "explain", "one")

    lines = done.out.splitlines()
    assert lines[0].split() == ["FINDING", "SEVERITY", "STATUS", "CONSTRAINT", "STORY"]
    assert len(lines) == 4
    (misspelt,) = [line for line in lines if "Misspelt." in line]
    assert misspelt.split()[:4] == [finding(played, "Misspelt."), "HIGH", "fixed", "clear"]
    assert "new in 1, fixed in 2" in misspelt
