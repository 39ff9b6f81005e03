import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signoff import Outcome, StepDef, Workflow
from signoff.app.project import Project
from signoff.core.outcome import Status
from signoff.errors import UnknownName, UsageError
from signoff.flows.commands import recorded_run
from signoff.flows.compile import compile_flow
from signoff.flows.policy import explain, replay
from signoff.review.adjudication import Verdict
from signoff.review.constraint import ConstraintBehavior, Level
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import constraint, fails, flow, issue, rules, step

TEXT = "The see is wide.\n"


async def begin(project: Project, *, verdict: str = "REWRITE", **config: Any) -> list[str]:
    """Runs a flow to its end and returns the ids of its findings, the worst first."""
    played = flow(
        constraints=[
            replace(constraint("clear"), behavior=ConstraintBehavior.from_dict({"low": "continue"}))
        ],
        max_iterations=1,
        **config,
    )
    found = fails(
        issue("Misspelt.", "HIGH", "The see", id="clear-001"),
        issue("Too wide.", "LOW", "wide", id="clear-002"),
        issue("A whale.", "HIGH", "a purple whale", id="clear-003"),
    )
    decided = {"issue_id": "clear-002", "status": "dismissed", "rationale": "A matter of taste."}
    replies = [TEXT, found, found, rules(verdict, decided), "The sea is wide.\n"]
    project.agents = {"claude": ScriptedAgent(replies)}
    async with project.engine() as engine:
        result = await engine.start(compile_flow(played, "sea"), name="one")
    assert result.status is Status.LIMIT, result
    entries = result.state["findings"]["entries"]
    return [each["id"] for each in sorted(entries, key=lambda each: str(each["finding"]))][::-1]


async def test_an_explanation_names_the_level_that_decided(project: Project) -> None:
    """Four levels can set a behavior; without the name, users try them one by one."""
    wide, misspelled, _ = await begin(project)

    by_file, built_in = (
        explain(recorded_run(project, "one"), wide),
        explain(recorded_run(project, "one"), misspelled),
    )

    assert (by_file.resolved.behavior, by_file.resolved.level) == ("continue", Level.CONSTRAINT)
    assert (built_in.resolved.behavior, built_in.resolved.level) == ("halt", Level.BUILT_IN)
    assert (by_file.blocks, built_in.blocks) == (False, True)


async def test_an_explanation_has_the_judges_decision(project: Project) -> None:
    """Half of all questions about a finding are why it was not fixed."""
    wide, misspelled, _ = await begin(project)

    dismissed, pursued = (
        explain(recorded_run(project, "one"), wide),
        explain(recorded_run(project, "one"), misspelled),
    )

    assert dismissed.decision is not None
    assert dismissed.decision["rationale"] == "A matter of taste."
    assert pursued.decision is not None
    assert pursued.decision["status"] == "pursuing"


async def test_a_quote_that_does_not_occur_is_marked(project: Project) -> None:
    """It is the first thing to know about a finding that looks odd."""
    *_, whale = await begin(project)

    assert explain(recorded_run(project, "one"), whale).finding.unverified is True


@pytest.mark.parametrize("named", ["whole", "beginning", "issue"])
async def test_a_finding_is_named_by_its_id_a_prefix_or_its_issue(
    project: Project, named: str
) -> None:
    """Users copy from `show`, from a log, or from a critique."""
    _, misspelled, _ = await begin(project)
    name = {"whole": misspelled, "beginning": misspelled[:6], "issue": "clear-001"}[named]

    assert explain(recorded_run(project, "one"), name).finding.id == misspelled


@pytest.mark.parametrize("named", ["nope", "", "c"])
async def test_an_unknown_finding_is_reported_with_the_known_ones(
    project: Project, named: str
) -> None:
    """Twelve hexadecimal digits are easily mistyped."""
    ids = await begin(project)

    with pytest.raises(UnknownName, match="valid names: ") as caught:
        explain(recorded_run(project, "one"), named)

    assert all(each in str(caught.value) for each in ids)


async def test_an_explanation_is_plain_values_under_documented_names(project: Project) -> None:
    """Scripts read it."""
    wide, *_ = await begin(project)

    explanation = explain(recorded_run(project, "one"), wide).to_json()

    assert json.loads(json.dumps(explanation)) == explanation
    assert (explanation["run"], explanation["behavior"], explanation["decided_by"]) == (
        "one",
        "continue",
        "the constraint's own file",
    )
    assert [each["says"] for each in explanation["levels"]] == ["continue", None, None, "ignore"]
    assert (explanation["blocks"], explanation["unverified"]) == (False, False)


async def test_a_replay_asks_no_agent_and_changes_nothing(project: Project, tmp_path: Path) -> None:
    """It is for trying things out; the run has to be the same afterwards."""
    await begin(project, verdict="APPROVED")
    before = project.store.row("one")
    project.agents = {}
    file = tmp_path / "mild.yaml"
    file.write_text("adjudication: {approval: {policy: no_critical}}\n")

    replayed = replay(recorded_run(project, "one"), file)

    (verdict,) = replayed.verdicts
    assert (verdict.was, verdict.now) == (Verdict.REWRITE, Verdict.APPROVED)
    assert [each.issue.id for each in replayed.issues] == ["clear-001", "clear-002", "clear-003"]
    assert project.store.row("one") == before


async def test_only_flows_have_a_policy(project: Project, tmp_path: Path) -> None:
    """A workflow in Python has findings of its own kind, or none."""
    async with project.engine() as engine:
        quick = Workflow("quick", StepDef("only", next={Outcome.OK: None}))
        await engine.start(quick, name="two")

    with pytest.raises(UsageError, match="is not a review flow"):
        explain(recorded_run(project, "two"), "x")
    with pytest.raises(UsageError, match="is not a review flow"):
        replay(recorded_run(project, "two"), tmp_path / "policy.yaml")


async def two_rounds(project: Project) -> None:
    """Runs a flow whose second round has another finding under the same issue id."""
    bill = "Fix it."
    first = rules("REWRITE", {"issue_id": "clear-001", "guidance": "Spell it."}, bill=bill)
    replies = [
        *(TEXT, fails(issue("Misspelt.", "HIGH", "see"), issue("Dull.", "HIGH", "wide")), first),
        *("The sea is wide.\n", fails(issue("Dull.", "HIGH", "wide"))),
        *(rules("REWRITE", bill=bill), "The sea is deep.\n"),
    ]
    steps = [
        step("generate"),
        step("critique"),
        step("adjudicate"),
        step("refine", mode="rewrite", loop_to="critique"),
    ]
    project.agents = {"claude": ScriptedAgent(replies)}
    async with project.engine() as engine:
        await engine.start(compile_flow(flow(steps, max_iterations=2), "sea"), name="two")


@pytest.mark.parametrize(("named", "words"), [("clear-001", "Dull."), ("clear-002", "Dull.")])
async def test_an_issue_of_any_round_names_its_finding_the_latest_round_first(
    project: Project, named: str, words: str
) -> None:
    """Ids of earlier rounds appear in critiques and logs, and were unknown after the round."""
    await two_rounds(project)

    assert explain(recorded_run(project, "two"), named).finding.finding == words


async def test_a_fixed_finding_keeps_the_decision_about_it(project: Project) -> None:
    """Later judges do not see it any more, so the last verdict does not mention it."""
    await two_rounds(project)
    (fixed,) = [
        each for each in recorded_run(project, "two").findings.values() if each.status == "fixed"
    ]

    decision = explain(recorded_run(project, "two"), fixed.id).decision

    assert decision is not None
    assert decision["guidance"] == "Spell it."


async def test_an_issue_that_may_be_several_findings_is_not_guessed(project: Project) -> None:
    """Two critics use the same id for different issues."""
    steps = [step("generate"), step("critique"), step("adjudicate", agent="policy")]
    played = flow(steps, [constraint("clear", agents=("claude", "codex"))], max_iterations=1)
    claude = ScriptedAgent([TEXT, fails(issue("Misspelt.", "HIGH", "see"))])
    codex = ScriptedAgent([fails(issue("Dull.", "HIGH", "wide"))])
    project.agents = {"claude": claude, "codex": codex}
    async with project.engine() as engine:
        await engine.start(compile_flow(played, "sea"), name="both")

    with pytest.raises(UsageError, match="matches several findings") as caught:
        explain(recorded_run(project, "both"), "clear-001")

    assert all(
        each.id in str(caught.value) for each in recorded_run(project, "both").findings.values()
    )
