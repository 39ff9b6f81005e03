"""`signoff policy` on a finished run."""

from collections.abc import Iterator

import pytest

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import DRAFT, FlowProject
from tests.acceptance.forked_program import ForkedProgram

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
def finished_run(
    tmp_path_factory: pytest.TempPathFactory, command_server: ForkedProgram
) -> Iterator[FlowProject]:
    """A run with one iteration of changes and a finding for each level of the policy."""
    with pytest.MonkeyPatch.context() as patch:
        flow_project = FlowProject(tmp_path_factory.mktemp("policy"), command_server, patch)
        flow_project.write_flow(FLOW)
        flow_project.constraints("clear", "tone", clear="behavior: {low: halt}\n")
        low = play.issue("LOW", "wide", finding="Too wide.")
        flow_project.script(
            play.author_writes(),
            play.critic_finds(
                "clear", play.issue("HIGH", finding="Misspelt."), low, contains=DRAFT
            ),
            play.critic_finds("tone", play.issue("MEDIUM", finding="Rude."), contains=DRAFT),
            play.critics_pass(),
            play.judge_decides("REWRITE", bill="Fix it.", contains=DRAFT),
            play.judge_decides("APPROVED"),
            play.editor_replaces(),
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
    ("words", "history", "behavior", "level"),
    [
        ("Misspelt.", "new in 1, fixed in 2", "halt", "the built-in default"),
        ("Too wide.", "new in 1, still open in 2", "halt", "the constraint's own file"),
        ("Rude.", "new in 1, fixed in 2", "continue", "constraint_behaviors of the flow"),
    ],
)
def test_explain_names_the_level_that_decided(
    finished_run: FlowProject, words: str, history: str, behavior: str, level: str
) -> None:
    """The effect of a finding can be configured on four levels."""
    plain = finished_run.call("policy", "explain", "one", finding(finished_run, words))
    report = finished_run.call(
        "policy", "explain", "one", finding(finished_run, words), "--json"
    ).json

    assert plain.code == 0, plain.err
    assert f"{behavior}, set by {level}" in plain.out
    assert f"  history   {history}\n" in plain.out
    assert (report["behavior"], report["decided_by"]) == (behavior, level)


def test_replay_recomputes_a_run_without_any_call(finished_run: FlowProject) -> None:
    """A new policy can be tested on old runs for free."""
    calls = len(finished_run.calls)
    finished_run.write(
        "other.yaml", "constraint_behaviors: {}\nadjudication: {approval: {block_on: []}}\n"
    )

    plain = finished_run.call("policy", "replay", "one", "--policy", "other.yaml")
    report = finished_run.call("policy", "replay", "one", "--policy", "other.yaml", "--json").json

    assert plain.code == 0, plain.err
    assert len(finished_run.calls) == calls
    assert "1 of 3 reported findings would behave differently" in plain.out
    assert "diverged at round 1, step review" in plain.out
    (changed,) = [each for each in report["findings"] if each["changed"]]
    assert (changed["constraint"], changed["was"], changed["now"]) == (
        *("tone", "continue"),
        "escalate",
    )
    assert [each["was"] for each in report["verdicts"]] == ["REWRITE", "APPROVED"]
