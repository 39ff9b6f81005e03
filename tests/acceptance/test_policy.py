"""`signoff policy` on a recorded run."""

from collections.abc import Iterator

import pytest

from tests.acceptance.desk import DRAFT, Desk, finds, issue, mends, passes, rules, writes

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
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One round of work and an approval, with a finding for each level."""
    with pytest.MonkeyPatch.context() as patch:
        desk = Desk(tmp_path_factory.mktemp("policy"), patch)
        desk.flow(FLOW)
        desk.constraints("clear", "tone", clear="behavior: {low: halt}\n")
        low = issue("LOW", "wide", finding="Too wide.")
        desk.play(
            writes(),
            finds("clear", issue("HIGH", finding="Misspelt."), low, contains=DRAFT),
            finds("tone", issue("MEDIUM", finding="Rude."), contains=DRAFT),
            passes(),
            rules("REWRITE", bill="Mend it.", contains=DRAFT),
            rules("APPROVED"),
            mends(),
        )
        done = desk.run()
        assert done.code == 0, done.err
        yield desk


def finding(desk: Desk, words: str) -> str:
    """Returns the id of a finding."""
    entries = desk.load("state.json")["findings"]["entries"]
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
def test_explain_shows_which_level_decided(
    played: Desk, words: str, behavior: str, level: str
) -> None:
    """Four levels can set the behavior of a finding."""
    text = played.here("policy", "explain", "one", finding(played, words))
    content = played.here("policy", "explain", "one", finding(played, words), "--json").json

    assert text.code == 0, text.err
    assert f"{behavior}, set by {level}" in text.out
    assert "new in 1, fixed in 2" in text.out
    assert (content["behavior"], content["decided_by"]) == (behavior, level)


def test_replay_recomputes_a_run_without_one_call(played: Desk) -> None:
    """Users try a policy on recorded runs without paying for new ones."""
    calls = len(played.calls)
    played.write(
        "other.yaml", "constraint_behaviors: {}\nadjudication: {approval: {block_on: []}}\n"
    )

    text = played.here("policy", "replay", "one", "--policy", "other.yaml")
    content = played.here("policy", "replay", "one", "--policy", "other.yaml", "--json").json

    assert text.code == 0, text.err
    assert len(played.calls) == calls
    assert "1 of 3 issues would have another behavior" in text.out
    assert "diverged at iteration 1, step review" in text.out
    (changed,) = [each for each in content["issues"] if each["changed"]]
    assert (changed["constraint"], changed["was"], changed["now"]) == (
        *("tone", "continue"),
        "escalate",
    )
    assert [each["was"] for each in content["verdicts"]] == ["REWRITE", "APPROVED"]


def test_an_invalid_policy_is_refused_with_its_line(played: Desk) -> None:
    """A misspelled behavior must not lead to `nothing would change`."""
    played.write("wrong.yaml", "default_behavior: {low: kontinue}\n")

    done = played.here("policy", "replay", "one", "--policy", "wrong.yaml")

    assert (done.code, done.out) == (2, "")
    assert "wrong.yaml:1: default_behavior.low is 'kontinue' (one of: halt, " in done.err


def test_an_unknown_finding_is_reported_with_the_known_ones(played: Desk) -> None:
    """The ids are long and easily mistyped."""
    done = played.here("policy", "explain", "one", "nothing")

    assert done.code == 2
    assert finding(played, "Rude.") in done.err


def test_explain_without_a_finding_lists_them_all(played: Desk) -> None:
    """Users need the id of a finding first, also of a fixed one."""
    done = played.here("policy", "explain", "one")

    lines = done.out.splitlines()
    assert lines[0].split() == ["FINDING", "SEVERITY", "STATUS", "CONSTRAINT", "HISTORY"]
    assert len(lines) == 4
    (misspelt,) = [line for line in lines if "Misspelt." in line]
    assert misspelt.split()[:4] == [finding(played, "Misspelt."), "HIGH", "fixed", "clear"]
    assert "new in 1, fixed in 2" in misspelt
