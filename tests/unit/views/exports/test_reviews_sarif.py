"""Tests of reviews as SARIF."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.scripted import ScriptedAgent
from signoff.core.errors import UsageError
from signoff.core.severity import Severity
from signoff.review.pure.work_order import Edit, apply_edits
from signoff.store.sqlite import MemoryStore
from signoff.views.exports.reviews import FINGERPRINT, sarif
from signoff.views.exports.run_record import ExportOptions, RunRecord
from tests.unit.review.flow.harness import (
    REWRITE_LOOP,
    fails,
    flow,
    issue,
    passes,
    play,
    rules,
    step,
)
from tests.unit.views.pages.test_report import HOSTILE, record, recorded

WIDE = "深い \U0001f30a the loud sea \u0301is here.\n"
"""Characters of three and four bytes and of one or two UTF-16 units, and a combining one."""
CALM = {"kind": "replace", "find": "loud", "text": "calm"}


def export(made: RunRecord) -> dict[str, Any]:
    (run,) = json.loads("".join(sarif(made, ExportOptions())))["runs"]
    return dict(run)


async def review(folder: Path, answers: list[Any], **config: Any) -> RunRecord:
    """Returns a review by claude, whose judge is claude as well."""
    store, judge = MemoryStore(), step("adjudicate", "judge")
    played = flow((*REWRITE_LOOP[:2], judge, REWRITE_LOOP[3]), **config)
    await play(played, {"claude": ScriptedAgent(answers)}, folder, store=store)
    return record(store)


async def test_a_finding_has_its_rule_its_place_and_its_identity(tmp_path: Path) -> None:
    """Columns count characters, whatever their bytes, or editors mark the wrong words."""
    found = fails(
        issue("Too loud", evidence="loud sea", rule_id="clear-rule", edit=CALM, confidence=0.9)
    )

    run = export(
        await review(tmp_path, [f"One.\n{WIDE}", found, rules("REWRITE")], max_iterations=1)
    )

    assert run["columnKind"] == "unicodeCodePoints"
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert result["ruleId"] == rule["id"] == "clear/clear-rule"
    assert rule["shortDescription"] == {"text": "It must be clear."}
    assert (result["level"], result["rank"], result["baselineState"]) == ("error", 90.0, "new")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "artifact.md", "uriBaseId": "SRCROOT"}
    start = WIDE.index("loud") + 1
    assert place["region"] == {
        "startLine": 2, "endLine": 2, "startColumn": start, "endColumn": start + len("loud sea"),
        "snippet": {"text": "loud sea"},
    }  # fmt: skip
    assert len(result["partialFingerprints"][FINGERPRINT]) == 12


async def test_an_exact_edit_is_a_fix_that_gives_the_same_text(tmp_path: Path) -> None:
    """A tool that applies it must get what signoff would have written."""
    found = fails(issue("Too loud", evidence="loud sea", edit=CALM))

    run = export(await review(tmp_path, [WIDE, found, rules("REWRITE")], max_iterations=1))

    (fix,) = run["results"][0]["fixes"]
    (replacement,) = fix["artifactChanges"][0]["replacements"]
    region = replacement["deletedRegion"]
    line = WIDE.split("\n")[region["startLine"] - 1]
    new = replacement["insertedContent"]["text"]
    fixed = line[: region["startColumn"] - 1] + new + line[region["endColumn"] - 1 :]
    assert f"{fixed}\n" == apply_edits(WIDE, [Edit.from_json(CALM)]).text


async def test_an_edit_that_does_not_fit_the_text_is_no_fix(tmp_path: Path) -> None:
    """It would change the wrong words."""
    edit = {**CALM, "find": "the"}
    found = fails(issue("Too loud", evidence="loud", edit=edit))
    text = f"the the {WIDE}"

    run = export(await review(tmp_path, [text, found, rules("REWRITE")], max_iterations=1))

    assert "fixes" not in run["results"][0]


@pytest.mark.parametrize(
    ("new", "inserted"), [("calm\r\nand", ["calm\r\nand"]), ("ca\x1blm", []), ("\u202ecalm", [])]
)
async def test_an_edit_is_never_exported_as_another_one(
    tmp_path: Path, new: str, inserted: list[str]
) -> None:
    """Line ends of Windows were exported as escapes, which an editor would have inserted."""
    found = fails(issue("Too loud", evidence="loud sea", edit={**CALM, "text": new}))

    run = export(await review(tmp_path, [WIDE, found, rules("REWRITE")], max_iterations=1))

    fixes = run["results"][0].get("fixes", [])
    changes = [each for fix in fixes for each in fix["artifactChanges"]]
    replacements = [each for change in changes for each in change["replacements"]]
    assert [each["insertedContent"]["text"] for each in replacements] == inserted


async def test_a_dismissed_finding_is_suppressed_with_the_reason(tmp_path: Path) -> None:
    """Reviewers see that someone has decided, who and why."""
    found = fails(issue("Too loud", evidence="loud", rule_id="clear-rule"))
    judged = rules(
        "APPROVED", {"issue_id": "clear-001", "status": "dismissed", "rationale": "Art."}
    )

    run = export(await review(tmp_path, [WIDE, found, judged, judged]))

    (result,) = run["results"]
    assert result["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "dismissed (claude): Art."}
    ]


async def test_an_omission_is_about_its_whole_file(tmp_path: Path) -> None:
    """Readers need a line to show it at."""
    run = export(
        await review(tmp_path, [WIDE, fails(issue("No fish")), rules("REWRITE")], max_iterations=1)
    )

    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 1}


async def test_five_uploads_in_turn_make_one_alert_for_each_finding(tmp_path: Path) -> None:
    """GitHub knows an alert by its rule, its file and its fingerprint, and closes missing ones."""
    quotes = ["loud", "sea", "here"]
    texts = [f"the {'very ' * n}loud sea is here\n" for n in range(4)]
    both = [issue(f"About {quote}", evidence=quote, rule_id="clear-rule") for quote in quotes]
    critiques = [fails(*both), fails(*both[:2]), fails(*both[1:]), fails(both[0]), passes()]
    answers: list[Any] = [texts[0]]
    for critique, text in zip(critiques, [*texts[1:], "calm here\n", ""], strict=True):
        answers += [critique, rules("REWRITE" if text else "APPROVED", bill="Fix it.")]
        answers += [text] if text else []
    made = await review(tmp_path, answers, max_iterations=5)
    alerts: dict[tuple[str, str, str], str] = {}
    numbers = []

    for end in judged_commits(made):
        run = export(replace_journal(made, end))
        uploaded = {key(each) for each in run["results"] if "suppressions" not in each}
        assert len(uploaded) == len([each for each in run["results"] if "suppressions" not in each])
        alerts |= dict.fromkeys(alerts, "closed") | dict.fromkeys(uploaded, "open")
        numbers.append(len(alerts))

    assert len(numbers) == 5
    assert numbers[0] == numbers[-1] == 3


def key(result: dict[str, Any]) -> tuple[str, str, str]:
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    return result["ruleId"], place, result["partialFingerprints"][FINGERPRINT]


def judged_commits(made: RunRecord) -> list[int]:
    """Returns the commits after which each round was judged."""
    ends = [
        seq
        for seq, event in made.events()
        if "last_adjudication" in getattr(event, "delta", {}).get("set", {})
    ]
    return list(dict.fromkeys(ends))


def replace_journal(made: RunRecord, end: int) -> RunRecord:
    return replace(made, journal=[row for row in made.journal if row.seq <= end])


async def test_the_same_journal_gives_the_same_bytes_and_hostile_texts_stay_texts(
    tmp_path: Path,
) -> None:
    """Exports are compared and cached."""
    hostile = f"{HOSTILE}\x1b[31m\u202e\ud83c"
    found = fails(issue(hostile, evidence="loud", rule_id=hostile, suggested_fix=hostile))
    made = await review(tmp_path, [WIDE, found, rules("REWRITE")], max_iterations=1)

    texts = ["".join(sarif(made, ExportOptions())) for _ in range(2)]

    assert texts[0] == texts[1]
    texts[0].encode()
    assert "\x1b" not in texts[0]
    assert "\u202e" not in json.loads(texts[0])["runs"][0]["results"][0]["message"]["text"]


@pytest.mark.parametrize("severity", list(Severity))
async def test_every_severity_has_a_level(tmp_path: Path, severity: Severity) -> None:
    """Levels decide what fails a build."""
    levels = {Severity.CRITICAL: "error", Severity.HIGH: "error", Severity.MEDIUM: "warning"}
    found = fails(issue("Too loud", severity.value, "loud"))

    run = export(
        await review(tmp_path, [WIDE, found, rules("REWRITE"), WIDE + "x"], max_iterations=1)
    )

    assert run["results"][0]["level"] == levels.get(severity, "note")


def test_a_run_without_a_review_is_refused() -> None:
    """An empty file would look as if nothing had been found."""
    with pytest.raises(UsageError, match="has no review"):
        list(sarif(recorded([]), ExportOptions()))
