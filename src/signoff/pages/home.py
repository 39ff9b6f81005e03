"""The first page: what needs you, then the runs that are under way, then all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from signoff.core.outcome import FINAL, Status
from signoff.core.requests import AnswerForm, RequestKind, request_word
from signoff.pages.html import Content, Markup, tag
from signoff.pages.parts import ago, one_line, run_path, section, status_mark, until
from signoff.runtime.store_port import RunRow

MOST_REQUESTS = 50
"""Requests that are listed; answering the first ones brings up the others."""
LONGEST_LINE = 160
DECISIONS = (AnswerForm.DECISION, AnswerForm.PICK)
"""Forms of answers that settle something; the others are texts or work."""


@dataclass(frozen=True)
class HomeFilter:
    """Which runs are listed; what is empty restricts nothing."""

    status: str = ""
    workflow: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        """Whether it restricts anything."""
        return bool(self.status or self.workflow or self.text)

    def query(self, **more: str) -> str:
        """Returns the address of the page with this filter."""
        values = {"status": self.status, "workflow": self.workflow, "q": self.text, **more}
        kept = {name: value for name, value in values.items() if value}
        return f"/?{urlencode(kept)}" if kept else "/"


@dataclass(frozen=True)
class HomePage:
    """What the first page shows."""

    requests: Sequence[Mapping[str, Any]]
    """Pending requests as plain values, oldest first."""
    pending: int
    """How many there are, listed or not."""
    active: Sequence[RunRow]
    """Runs that have not ended, without those that a listed request belongs to."""
    others: Sequence[RunRow]
    """A part of the runs that match the filter, newest first."""
    filter: HomeFilter
    now: float
    following: str = ""
    """The cursor of the next part; empty if this is the last."""
    continued: bool = False
    """Whether parts come before this one."""
    answered: frozenset[str] = frozenset()
    """Runs that have their answers, and that no process has continued yet."""


def home(page: HomePage) -> Iterator[Markup]:
    """Yields the parts of the page."""
    yield tag("h1", "Inbox and runs", class_="hidden")
    if not page.continued and not page.filter:
        yield section("inbox", _inbox_title(page), _inbox(page))
        if page.active:
            yield section("active", "Under way", _runs(page.active, page))
    yield section("find", "Find among all runs", _filter_form(page.filter))
    yield section("runs", _runs_title(page), _listed(page))


def _inbox_title(page: HomePage) -> Content:
    return ["Needs you ", tag("span", page.pending, class_="count")] if page.pending else "Inbox"


def _inbox(page: HomePage) -> Content:
    if not page.requests:
        return tag("p", "Nothing waits for you.", class_="card empty")
    items: list[Content] = [tag("ul", [_request(each, page.now) for each in page.requests],
                                class_="rows needs")]  # fmt: skip
    rest = page.pending - len(page.requests)
    if rest > 0:
        items.append(tag("p", f"{rest:,} more are pending; they follow as you answer.",
                         class_="soft"))  # fmt: skip
    return items


def _request(request: Mapping[str, Any], now: float) -> Markup:
    title = request.get("title") or request["prompt"]
    link = tag("a", one_line(str(title), LONGEST_LINE), href=f"/requests/{request['number']}")
    facts: list[Content] = [
        f"{request_word(request)} #{request['number']} · ",
        tag("a", request["run"], href=run_path(request["run"])),
        f" · {request['step']} · ",
        ago(request["opened_at"], now),
    ]
    verb = "Decide" if RequestKind(request["kind"]).answer_form in DECISIONS else "Answer"
    deadline = request.get("deadline")
    if deadline is not None:
        words = [" · ", tag("b", "deadline ", until(deadline, now))]
        facts += [tag("span", words, class_="wait")]
    return tag(
        "li",
        tag("div", tag("div", link, class_="name"), tag("div", facts, class_="facts")),
        tag("a", verb, href=f"/requests/{request['number']}", class_="button",
            aria_label=f"{verb} request {request['number']}"),
        id=f"request-{request['number']}",
    )  # fmt: skip


def _runs_title(page: HomePage) -> str:
    if page.filter:
        return "Matching runs"
    return "Ended runs" if not page.continued else "Earlier runs"


def _filter_form(chosen: HomeFilter) -> Markup:
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


def _listed(page: HomePage) -> Content:
    if not page.others:
        none = "No run matches." if page.filter else "No run has ended yet."
        return tag("p", none, class_="card empty")
    more = page.filter.query(after=page.following) if page.following else ""
    pages = [
        tag("a", "Newest", href=page.filter.query()) if page.continued else None,
        tag("a", "Older runs", href=more, rel="next") if more else None,
    ]
    return [_runs(page.others, page), tag("nav", pages, class_="pages", aria_label="Pages of runs")]


def _runs(rows: Sequence[RunRow], page: HomePage) -> Markup:
    return tag("ul", [_run(row, page) for row in rows], class_="rows")


def _run(row: RunRow, page: HomePage) -> Markup:
    facts: list[Content] = [row.workflow]
    if row.status not in FINAL and row.step:
        facts.append(f" · at {row.step}, round {row.iteration}")
    facts += [" · ", ago(row.updated_at, page.now)]
    if row.name in page.answered:
        facts.append(" · answered, waits to be continued")
    elif row.reason and row.status not in (Status.WAITING, Status.RUNNING):
        facts.append(f" · {one_line(row.reason, LONGEST_LINE)}")
    link = tag("a", row.name, href=run_path(row.name))
    return tag(
        "li",
        tag("div", tag("div", link, class_="name"), tag("div", facts, class_="facts")),
        status_mark(row.status),
    )
