"""Tests of the report of a run."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from signoff.agents.scripted import ScriptedAgent
from signoff.core import events as ev
from signoff.core.codec import encode
from signoff.core.outcome import Outcome, Status
from signoff.review.flow.history import FlowHistory
from signoff.review.pure.history import Round
from signoff.runtime.store_port import JournalRow
from signoff.store.sqlite import MemoryStore
from signoff.views.exports.run_record import ExportOptions, RunRecord
from signoff.views.pages.report import report, rounds_chart
from tests.unit.review.flow.harness import REWRITE_LOOP, fails, flow, issue, passes, play
from tests.unit.surfaces.web.long_review import LongReview
from tests.unit.surfaces.web.page_reader import PageReader as Page

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><!--"
SECONDS, LARGEST = 5.0, 2_000_000
"""The report of a long run takes half a second; tests also run on machines that are busy."""


def record(store: MemoryStore, name: str = "run") -> RunRecord:
    row = store.row(name)
    return RunRecord(
        name=name,
        workflow=row.workflow,
        target="",
        definition=json.loads(store.description(row.id)),
        journal=store.journal(row.id),
        blob=store.blob,
        history=FlowHistory,
    )


def page(made: RunRecord) -> str:
    return "".join(report(made, ExportOptions()))


async def played(folder: Path, answers: list[Any]) -> RunRecord:
    store = MemoryStore()
    await play(flow(REWRITE_LOOP), {"claude": ScriptedAgent(answers)}, folder, store=store)
    return record(store)


async def test_it_shows_findings_changes_decisions_and_cost(tmp_path: Path) -> None:
    """Someone who was not there understands what happened."""
    found = fails(issue("Too loud.", evidence="loud", suggested_fix="Say calm."))
    answers = ["The loud sea.", found, "The calm sea.", passes()]

    made = page(await played(tmp_path, answers))

    shown = Page(made)
    assert "The <mark>loud</mark> sea." in made
    assert "<del>loud </del>" in made
    assert "Suggested fix: Say calm." in shown.text
    for words in (
        "passed review",
        "fixed in round 2",
        "asks for changes, 1 to fix",
        "policy",
        "Write about the sea.",
    ):
        assert words in shown.text
    assert "approved" not in shown.text.lower(), "no human has decided"
    assert {"rounds", "findings", "text", "changes", "decisions", "cost", "steps"} <= {*shown.ids}
    assert set(shown.addresses) <= {f"#{each}" for each in shown.ids}


async def test_hostile_texts_stay_texts_and_nothing_is_loaded(tmp_path: Path) -> None:
    """The page is opened by people who trust their own file."""
    found = fails(issue(HOSTILE, evidence=HOSTILE, rule_id=HOSTILE, suggested_fix=HOSTILE))
    answers = [f"# {HOSTILE}\n", found, f"# calm {HOSTILE}!\n", found, f"{HOSTILE} x", passes()]

    shown = Page(page(await played(tmp_path, answers)))

    assert HOSTILE in shown.text
    assert not {"script", "img", "iframe", "link", "object", "base", "form"} & {*shown.tags}
    assert shown.handlers == []
    assert all(each.startswith("#") for each in shown.addresses)


def test_a_run_without_a_review_has_a_report_too() -> None:
    """Workflows in Python have steps, decisions and costs."""
    started = ev.RunStarted("plain", "d", "one", {}, at=1.0)
    done = ev.StepFinished(Outcome.OK, "one/ok", at=2.0)
    stopped = ev.RunStopped(Status.COMPLETED, at=2.0)

    shown = Page(page(recorded([started, done, stopped])))

    assert "findings" not in shown.ids
    assert "completed" in shown.text


def test_a_long_review_is_written_quickly_and_is_not_too_large() -> None:
    """Twenty rounds with five hundred findings are read on the train."""
    store = MemoryStore()
    made = record(store, LongReview(store).write())
    begun = time.process_time()

    text = page(made)

    assert text.count('class="card finding') == 500
    assert len(text.encode()) <= LARGEST
    assert time.process_time() - begun < SECONDS


def recorded(events: list[ev.Event], definition: Mapping[str, Any] | None = None) -> RunRecord:
    blobs: dict[str, str] = {}
    rows = [JournalRow(n, encode([ev.to_json(each)], blobs)) for n, each in enumerate(events, 1)]
    history = FlowHistory if definition is not None else None
    return RunRecord("run", "w", "", definition or {}, rows, blobs.__getitem__, history=history)


# Tests of the chart of rounds.


def chart(*opened: dict[str, int]) -> str:
    rounds = [Round(n, counts={"open": each}) for n, each in enumerate(opened, 1)]
    return str(rounds_chart(rounds))


def test_each_round_has_a_bar_with_a_part_for_each_severity() -> None:
    """Readers see at a glance whether the review converges."""
    svg, _, legend = chart({"CRITICAL": 1, "LOW": 3}, {"LOW": 2}, {}).partition("</svg>")

    root = ElementTree.fromstring(f"{svg}</svg>")
    rects = [each for each in root.iter() if each.tag.endswith("rect")]
    heights = [float(each.get("height", "")) for each in rects]

    assert [each.get("class") for each in rects] == ["critical", "low", "low"]
    assert heights[1] > heights[2] > heights[0]
    assert "round 3: 0 open" in svg
    assert "Critical" in legend
    assert "High" not in legend


def test_rounds_that_were_not_reviewed_have_no_chart() -> None:
    """An empty frame says nothing."""
    assert rounds_chart([Round(1)]) == ""
