"""What an agent pays for following a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from signoff.app.runs.history import news
from signoff.app.settings.project import Project
from signoff.core.errors import UsageError
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.runtime.store_port import InboxItem, JournalRow, RunId, RunRow
from signoff.surfaces.mcp.tools import LONGEST_SHOWN, Part, news_reply, part_of_run
from tests.unit.surfaces.mcp.review_server import ReviewServer
from tests.unit.surfaces.mcp.test_server import CHARACTERS_PER_TOKEN, on_the_wire, tools_of

ROUNDS = 5
FINDINGS = 40
MINUTES = 15
WAIT_SECONDS = 50


class StoreAsOf:
    """A store that ends at an earlier commit of the only run, while it was being driven."""

    def __init__(self, store: Any, head: int) -> None:
        self._store, self._head = store, head

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def row(self, name: str) -> RunRow:
        row: RunRow = self._store.row(name)
        return (
            row if row.head <= self._head else row._replace(head=self._head, status=Status.QUEUED)
        )

    def journal(self, run: RunId, after: int = 0) -> list[JournalRow]:
        return [each for each in self._store.journal(run, after) if each.seq <= self._head]

    def items(
        self, run: str | None = None, *, state: Sequence[ItemState] = (ItemState.OPEN,)
    ) -> list[InboxItem]:
        row = self.row(str(run))
        return [] if row.status is Status.QUEUED else list(self._store.items(run, state=state))


def tokens(*texts: str) -> float:
    return sum(map(len, texts)) / CHARACTERS_PER_TOKEN


def long_review(server: ReviewServer) -> None:
    """Scripts a review with many findings in each of several rounds."""
    flow = (server.folder / ".signoff/flows/notice.yaml").read_text()
    server.write(
        ".signoff/flows/notice.yaml", f"max_iterations: {ROUNDS + 1}\nmax_findings: 100\n{flow}"
    )
    rules = ["version: 1", "rules:"]
    for number in range(ROUNDS):
        words = " ".join(f"w{number}x{each}" for each in range(FINDINGS))
        step = "draft" if number == 0 else "fix"
        rules.append(f"  - {{step: {step}, times: 1, text: '{words}'}}")
        issues = [
            {
                "severity": ("CRITICAL", "HIGH", "MEDIUM")[each % 3],
                "finding": f"Word {each} of round {number} is wrong: " + "because " * 20,
                "evidence": f"w{number}x{each}",
            }
            for each in range(FINDINGS)
        ]
        found = json.dumps({"overall": "FAIL", "issues": issues})
        rules.append(f"  - {{step: review, times: 1, json: {found}}}")
    rules += [
        "  - {step: fix, text: Done.}",
        "  - {step: review, json: {overall: PASS, issues: []}}",
    ]
    server.write("script.yaml", "\n".join(rules))


async def test_a_review_of_15_minutes_costs_20_calls_and_8000_tokens(server: ReviewServer) -> None:
    """Polling is what makes long work expensive for the agent that waits for it.

    The agent starts the review, waits as long as a client allows, again and again, and shows the
    findings. Its journal is cut into as many parts as there are waits.
    """
    long_review(server)
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
        await server.drive("one")
        shown = await client.call("show", run="one")
        fixed = client.characters
    waits = MINUTES * 60 // WAIT_SECONDS
    with server.project() as project:
        head = project.store.row("one").head
        cuts = [head * (each + 1) // waits for each in range(waits)]
        replies = [
            _wait(project, cut, before) for before, cut in zip([0, *cuts], cuts, strict=False)
        ]

    definitions = json.dumps(on_the_wire(await tools_of(server)), separators=(",", ":"))
    calls = 2 + len(replies)
    paid = tokens(definitions) + fixed / CHARACTERS_PER_TOKEN + sum(each[0] for each in replies)
    assert shown["pages"] > 1
    assert replies[-1][1]["status"] == "waiting"
    assert max(each[0] for each in replies) <= 600
    assert (calls <= 20, paid <= 8_000) == (True, True), (calls, paid)


def _wait(project: Project, head: int, after: int) -> tuple[float, dict[str, Any]]:
    """Returns the tokens of a wait between two commits, and its reply."""
    past = replace(project, store=StoreAsOf(project.store, head))
    reply = dict(news_reply(past, news(past, "one", after), after=after))
    call = {"name": "wait", "arguments": {"run": "one", "cursor": after}}
    return tokens(json.dumps(call), json.dumps(reply, separators=(",", ":"))), reply


async def test_an_answer_is_short_whatever_happened(server: ReviewServer) -> None:
    """A long reason, a long question or a thousand findings must not fill a conversation."""
    long_review(server)
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one", limits={"calls": 5})
        await server.drive("one")
        news_of_all = await client.call("wait", run="one")

    text = json.dumps(news_of_all, separators=(",", ":"))
    assert news_of_all["status"] == "budget"
    assert news_of_all["findings"]["open"]["CRITICAL"] > 1
    assert tokens(text) <= 600


async def test_a_run_that_no_worker_can_take_is_reported(server: ReviewServer) -> None:
    """Runs in a database server have no worker until someone starts one; an agent cannot see it."""
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
        queued = await client.call("wait", run="one", seconds=0.01)

    assert (queued["status"], queued["reason"]) == ("queued", "no worker is running")
    assert "start a worker" in queued["next"]


@pytest.fixture
async def reviewed(server: ReviewServer) -> ReviewServer:
    """A run `one` with a finding that was fixed, waiting for the sign-off."""
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
    await server.drive("one")
    return server


PARTS: list[tuple[Part, int | None, str]] = [
    ("findings", None, "fixed in round 2"),
    ("findings", 1, "A promised cure."),
    ("findings", 9, "no findings"),
    ("diff", None, "+Our tea warms you."),
    ("diff", 1, "# answers "),
    ("diff", 2, "nothing was changed"),
    ("text", None, "Our tea warms you."),
    ("text", 1, "Our tea cures colds."),
    ("plan", None, "limits: none"),
    ("spend", None, "4 calls"),
    ("request", None, "option: approve"),
    ("request", 1, "Sign off this result?"),
]


async def test_each_part_is_a_text(reviewed: ReviewServer) -> None:
    """Of the whole run, of one round, or of one request."""
    with reviewed.project() as project:
        texts = [part_of_run(project, "one", part, number) for part, number, _ in PARTS]

    missing = [part for part, text in zip(PARTS, texts, strict=True) if part[2] not in text]
    assert missing == []


async def test_a_request_of_another_run_is_not_shown_as_one_of_this(
    reviewed: ReviewServer,
) -> None:
    """An agent would answer or ask about the wrong thing."""
    async with reviewed.client() as client:
        await client.call("start", workflow="notice", name="two")
    await reviewed.drive("two")

    with reviewed.project() as project, pytest.raises(UsageError, match="belongs to run 'two'"):
        part_of_run(project, "one", "request", 2)


async def test_what_a_request_shows_is_cut(server: ReviewServer) -> None:
    """The page shows all of it."""
    words = "word " * LONGEST_SHOWN
    passes = "  - {step: review, json: {overall: PASS, issues: []}}\n"
    server.write("script.yaml", f"version: 1\nrules:\n  - {{step: draft, text: {words}}}\n{passes}")
    async with server.client() as client:
        await client.call("start", workflow="notice", name="one")
    await server.drive("one")

    with server.project() as project:
        text = part_of_run(project, "one", "request", None)

    assert "more characters]" in text
    assert len(text) < LONGEST_SHOWN + 1_000
