"""The first page, with what needs you and all runs, and the page about what runs have cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from signoff.app.people.answering import open_requests, request_line
from signoff.app.runs.runs import RunFilter, answered_runs, list_page, spending
from signoff.app.settings.project import Project
from signoff.core.amounts import money, partial
from signoff.core.errors import UnknownName
from signoff.core.one_line import one_line
from signoff.core.outcome import FINAL, NOT_ENDED, Status
from signoff.core.requests import AnswerForm, RequestKind
from signoff.runtime.store_port import LedgerTotal, RunRow
from signoff.surfaces.web.route_params import API, OpenProject
from signoff.surfaces.web.views.frame import LONGEST_LINE, Live, request_words, show_page
from signoff.views.pages import html
from signoff.views.pages.html import Content, Markup, tag
from signoff.views.pages.report import AMOUNTS, amounts

PAGE_ROWS = 50
MOST_ACTIVE = 100
MOST_REQUESTS = 50
"""Requests that are listed; answering the first ones brings up the others."""
DECISIONS = (AnswerForm.DECISION, AnswerForm.PICK)
"""Forms of answers that settle something; the others are texts or work."""
PERIODS = {1: "Last day", 7: "Last 7 days", 30: "Last 30 days", 365: "Last year"}
"""The periods of spend to choose from, in days."""

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class _Filter:
    """Which runs are listed; what is empty restricts nothing."""

    status: str
    workflow: str
    text: str

    def __bool__(self) -> bool:
        return bool(self.status or self.workflow or self.text)

    def address(self, after: str = "") -> str:
        """Returns the address of the page with this filter, from a cursor on."""
        values = {"status": self.status, "workflow": self.workflow, "q": self.text, "after": after}
        kept = {name: value for name, value in values.items() if value}
        return f"/?{urlencode(kept)}" if kept else "/"

    def statuses(self) -> tuple[Status, ...]:
        """Returns the statuses to list; without a filter, runs that continue are listed above."""
        if not self.status:
            return () if self else tuple(each for each in Status if each not in NOT_ENDED)
        try:
            return (Status(self.status),)
        except ValueError:
            raise UnknownName("status", self.status, [each.value for each in Status]) from None


@router.get("/")
def home_page(
    request: Request,
    project: OpenProject,
    status: str = "",
    workflow: str = "",
    q: str = "",
    after: str = "",
) -> Response:
    """Shows what needs the user, then the runs that are under way, then all others."""
    chosen = _Filter(status, workflow.strip(), q.strip())
    # Asked before reading, so that a change in between is an event for this page.
    last = project.store.news(None).last
    wanted = RunFilter(chosen.statuses(), chosen.workflow, chosen.text)
    listed = list_page(project, wanted, cursor=after, limit=PAGE_ROWS)
    rows = _Rows(project.clock.now(), frozenset(answered_runs(project)))
    main: list[Content] = [tag("h1", "Inbox and runs", class_="hidden")]
    if not after and not chosen:
        main += _above(project, rows)
    main += [
        html.section("find", "Find among all runs", _filter_form(chosen)),
        html.section("runs", _runs_title(chosen, after), rows.show(listed.rows, chosen)),
        _pages(chosen, after, listed.next or "") if listed.rows else None,
    ]
    events = f"{API}/events{f'?after={last[0]}.{last[1]}' if last else ''}"
    live = Live(events, chosen.address(after))
    return show_page(request, project, "Inbox and runs", main, here="/", live=live)


def _above(project: Project, rows: _Rows) -> Iterator[Markup]:
    """Yields the inbox, and the runs under way that no listed request belongs to."""
    pending = open_requests(project)
    listed = [request_line(project, line) for line in pending[:MOST_REQUESTS]]
    count = ["Needs you ", tag("span", len(pending), class_="count")] if pending else "Inbox"
    yield html.section("inbox", count, _inbox(listed, len(pending), rows.now))
    # A run that needs you is in the inbox already; listed twice, it would look like two.
    named = {each["run"] for each in listed}
    active = list_page(project, RunFilter(tuple(NOT_ENDED)), limit=MOST_ACTIVE).rows
    if others := [row for row in active if row.name not in named]:
        yield html.section("active", "Under way", rows.show(others))


def _inbox(requests: Sequence[Mapping[str, Any]], pending: int, now: float) -> Iterator[Markup]:
    if not requests:
        yield tag("p", "Nothing waits for you.", class_="card empty")
        return
    yield tag("ul", [_request(each, now) for each in requests], class_="rows needs")
    rest = pending - len(requests)
    if rest > 0:
        yield tag("p", f"{rest:,} more are pending; they follow as you answer.", class_="soft")


def _request(request: Mapping[str, Any], now: float) -> Markup:
    verb = "Decide" if RequestKind(request["kind"]).answer_form in DECISIONS else "Answer"
    address, label = f"/requests/{request['number']}", f"{verb} request {request['number']}"
    button = tag("a", verb, href=address, class_="button", aria_label=label)
    return tag("li", request_words(request, now), button, id=f"request-{request['number']}")


def _runs_title(chosen: _Filter, after: str) -> str:
    if chosen:
        return "Matching runs"
    return "Earlier runs" if after else "Ended runs"


def _filter_form(chosen: _Filter) -> Markup:
    options = [tag("option", "any status", value="")]
    options += [
        tag("option", each.value.replace("_", " "), value=each.value,
            selected=each.value == chosen.status)
        for each in Status
    ]  # fmt: skip
    fields = [
        tag("label", tag("span", "Status"), tag("select", options, name="status")),
        tag("label", tag("span", "Workflow"), tag("input", name="workflow", value=chosen.workflow)),
        tag("label", tag("span", "Text"), tag("input", type="search", name="q", value=chosen.text)),
        tag("button", "Find", type="submit"),
        tag("a", "Clear", href="/") if chosen else None,
    ]
    return tag("form", fields, method="get", action="/", class_="filter", role="search",
               aria_label="Find among all runs")  # fmt: skip


def _pages(chosen: _Filter, after: str, following: str) -> Markup:
    links = [
        tag("a", "Newest", href=chosen.address()) if after else None,
        tag("a", "Older runs", href=chosen.address(following), rel="next") if following else None,
    ]
    return tag("nav", links, class_="pages", aria_label="Pages of runs")


@dataclass(frozen=True)
class _Rows:
    """Shows runs as the rows of a list."""

    now: float
    answered: frozenset[str]
    """Runs that have their answers, and that no process has continued yet."""

    def show(self, runs: Sequence[RunRow], chosen: _Filter | None = None) -> Markup:
        if runs:
            return tag("ul", [self._row(run) for run in runs], class_="rows")
        none = "No run matches." if chosen else "No run has ended yet."
        return tag("p", none, class_="card empty")

    def _row(self, run: RunRow) -> Markup:
        facts: list[Content] = [run.workflow]
        if run.status not in FINAL and run.step:
            facts.append(f" · at {run.step}, round {run.iteration}")
        facts += [" · ", html.ago(run.updated_at, self.now)]
        if run.name in self.answered:
            facts.append(" · answered, waits to be continued")
        elif run.reason and run.status not in (Status.WAITING, Status.RUNNING):
            facts.append(f" · {one_line(run.reason, LONGEST_LINE)}")
        link = tag("a", run.name, href=html.run_path(run.name))
        return tag(
            "li",
            tag("div", tag("div", link, class_="name"), tag("div", facts, class_="facts")),
            html.status_mark(run.status),
        )


@router.get("/spend")
def show_spend(
    request: Request, project: OpenProject, days: Annotated[int, Query(ge=1, le=36_500)] = 30
) -> Response:
    """Shows what runs have cost in the last days, the most expensive first."""
    since, totals = spending(project, days)
    links = [
        tag("a", words, href=f"/spend?days={each}", aria_current="true" if each == days else None)
        for each, words in PERIODS.items()
    ]
    note = f"Runs that changed since {html.moment(since)}, each with everything it has cost so far."
    main = [
        tag("h1", "Spend"),
        tag("nav", links, aria_label="Period"),
        tag("p", note, class_="soft small"),
        tag("div", _totals(totals), class_="tiles"),
        _lines(totals) if totals else tag("p", "No agent was asked in this time.",
                                          class_="card empty"),
    ]  # fmt: skip
    return show_page(request, project, "Spend", main, here="/spend")


def _totals(totals: Sequence[LedgerTotal]) -> Iterator[Markup]:
    # What some calls did not report is counted apart: an unknown cost is never shown as 0.
    known, unknown = sum(each.usd for each in totals), sum(each.unknown_usd for each in totals)
    yield html.tile(partial(money(known), known, unknown), "cost")
    yield html.tile(f"{sum(each.calls for each in totals):,}", "calls")
    yield html.tile(f"{unknown:,}", "calls of unknown cost")


def _lines(totals: Sequence[LedgerTotal]) -> Markup:
    rows = [
        (each.workflow, each.agent, each.model or "-", f"{each.runs:,}", *amounts(each))
        for each in totals
    ]
    headings = ("Workflow", "Agent", "Model", "Runs", *AMOUNTS)
    return html.scrollable(
        "Spend by workflow, agent and model", html.table(headings, rows, numbers=6)
    )
