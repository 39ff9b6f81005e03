"""Tests of the report of a run."""

import json
import time
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from signoff.agents.scripted import ScriptedAgent
from signoff.core import events as ev
from signoff.core.codec import encode
from signoff.core.outcome import Outcome, Status
from signoff.exports.run_record import ExportOptions, RunRecord
from signoff.flows.history import FlowHistory
from signoff.pages.report import report
from signoff.runtime.store_port import JournalRow
from signoff.store.sqlite import MemoryStore
from tests.unit.flows.harness import REWRITE_LOOP, fails, flow, issue, passes, play

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><!--"
SECONDS, LARGEST = 5.0, 2_000_000
"""The report of a long run takes half a second; tests also run on machines that are busy."""


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("href", "src", "action", "data")]
        self.handlers += [k for k, _ in attrs if k.startswith("on")]
        self.ids += [v or "" for k, v in attrs if k == "id"]

    def handle_data(self, data: str) -> None:
        self.text += data


def record(store: MemoryStore) -> RunRecord:
    row = store.row("run")
    return RunRecord(
        name="run",
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


async def test_the_same_journal_gives_the_same_page(tmp_path: Path) -> None:
    """It can be compared, and be a build's output."""
    made = await played(tmp_path, ["The loud sea.", passes()])

    assert page(made) == page(made)


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
    made = long_review(rounds=20, per_round=25)
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


def long_review(rounds: int, per_round: int) -> RunRecord:
    """Returns a review in which every round fixes its findings and finds as many new ones."""
    events = list[ev.Event]()
    events.append(ev.RunStarted("long", "d", "draft", {}, at=1.0))

    def text(number: int) -> str:
        lines = (
            f"Line {n} has flaw{number}x{n} in {'many words ' * 8}\n\n" for n in range(per_round)
        )
        return "".join(lines)

    def step(kind: str, to: str, number: int, **changed: Any) -> None:
        delta = {"set": {"step": {"kind": kind, "step": kind, "agent": "claude"}, **changed}}
        at = float(len(events))
        events.append(ev.StepFinished(Outcome.OK, f"{kind}/ok", to, delta, round=number, at=at))

    every: list[dict[str, Any]] = []
    step("generate", "review", 1, artifact=text(1))
    for number in range(1, rounds + 1):
        entries = [
            {
                "id": f"f{number}x{n}", "constraint": "clear", "rule": "main", "severity": "HIGH",
                "quote": f"flaw{number}x{n}", "location": "", "finding": "It is wrong. " * 8,
                "status": "open" if number == rounds else "fixed", "first": number, "last": number,
                "history": [[number, "new"]], "flagged_by": ["claude"],
            }
            for n in range(per_round)
        ]  # fmt: skip
        every += entries
        findings = {"round": number, "entries": list(every)}
        step("critique", "fix", number, findings=findings)
        step("refine", "review", number + 1, artifact=text(number + 1), findings=findings)
    events.append(ev.RunStopped(Status.LIMIT, at=100.0))
    return recorded(events, {"source": {"constraints": []}})
