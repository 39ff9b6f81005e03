"""What runs have cost, by workflow, agent and model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signoff.pages.html import Markup, tag
from signoff.pages.parts import moment, scrollable, table, tile
from signoff.pages.run_parts import AMOUNTS, amounts
from signoff.runtime.amounts import money, partial
from signoff.runtime.store_port import LedgerTotal

PERIODS = {1: "Last day", 7: "Last 7 days", 30: "Last 30 days", 365: "Last year"}
"""The periods to choose from, in days."""


def spend_page(totals: Sequence[LedgerTotal], since: float, days: int) -> Iterator[Markup]:
    """Yields what was spent in a period, the most expensive first."""
    yield tag("h1", "Spend")
    links = [
        tag("a", words, href=f"/spend?days={each}", aria_current="true" if each == days else None)
        for each, words in PERIODS.items()
    ]
    yield tag("nav", links, aria_label="Period")
    note = f"Runs that changed since {moment(since)}, each with everything it has cost so far."
    yield tag("p", note, class_="soft small")
    known, unknown = sum(each.usd for each in totals), sum(each.unknown_usd for each in totals)
    tiles = [
        tile(partial(money(known), known, unknown), "cost"),
        tile(f"{sum(each.calls for each in totals):,}", "calls"),
        tile(f"{unknown:,}", "calls of unknown cost"),
    ]
    yield tag("div", tiles, class_="tiles")
    if not totals:
        yield tag("p", "No agent was asked in this time.", class_="card empty")
        return
    rows = [
        (each.workflow, each.agent, each.model or "-", f"{each.runs:,}", *amounts(each))
        for each in totals
    ]
    headings = ("Workflow", "Agent", "Model", "Runs", *AMOUNTS)
    yield scrollable("Spend by workflow, agent and model", table(headings, rows, numbers=6))
