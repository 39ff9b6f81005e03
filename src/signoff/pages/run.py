"""The page of a run: its status, what it waits for, and its whole review.

Runs of every notation have one. A review adds its rounds, findings, text and changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signoff.core.effects import EffectKind
from signoff.core.outcome import FINAL, Status
from signoff.core.requests import request_word
from signoff.core.words import FindingStatus
from signoff.pages.changes import ChangesView, changes_html
from signoff.pages.chart import rounds_chart
from signoff.pages.findings import by_status, finding_html, finding_line, marked_text
from signoff.pages.html import Content, Markup, tag
from signoff.pages.markdown import is_markdown
from signoff.pages.parts import (
    ago,
    moment,
    one_line,
    run_path,
    scrollable,
    section,
    status_mark,
    tile,
    until,
)
from signoff.pages.run_parts import (
    cost,
    decisions,
    figures,
    status_words,
    steps,
    who_read,
    written_files,
)
from signoff.pages.workflow_graph import step_list, workflow_graph
from signoff.review.finding import group_equal
from signoff.review.history import ReviewHistory, Version
from signoff.runtime.amounts import duration
from signoff.runtime.narration import LogLine, Weight, describe_stop
from signoff.runtime.store_port import RunRow
from signoff.runtime.timeline import Timeline

MOST_CARDS = 40
"""Findings of one status that the page shows in full; the others have a page of their own."""
MOST_REQUESTS = 10
"""Pending requests that the page lists, the oldest ones."""
LONGEST_LINE = 200


@dataclass(frozen=True)
class RunView:
    """What the page of a run shows."""

    row: RunRow
    """The run with its current status."""
    timeline: Timeline
    definition: Mapping[str, Any]
    """The definition that it was started with."""
    now: float
    changes: ChangesView
    history: ReviewHistory | None = None
    requests: Sequence[Mapping[str, Any]] = ()
    """Its pending requests as lists show them, or the first of them."""
    pending: int = 0
    """How many there are."""
    details: str = ""
    """What its notation reports about it."""
    log: Sequence[LogLine] = ()
    """The latest lines of its log."""
    remedies: Sequence[str] = ()
    """How to continue it, in words."""
    exports: Sequence[str] = ()
    """The names of the formats that it can be exported in."""
    notice: str = ""
    """What has just happened."""


def run_page(view: RunView) -> Iterator[Markup]:
    """Yields the parts of the page."""
    yield from _summary(view)
    yield from _needs(view)
    yield from _at_work(view)
    history = view.history
    yield tag("div", [tile(*each) for each in figures(view.timeline, history)], class_="tiles")
    yield tag("nav", _sections(view), class_="sections", aria_label="Sections of this page")
    if history is not None and history.versions:
        yield from _review(view, history)
    else:
        yield section("workflow", "Workflow", _graph(view))
    if view.details:
        yield section("details", "Details", tag("pre", view.details, tabindex=0))
    yield decisions(view.timeline, history)
    yield cost(view.timeline)
    yield steps(view.timeline)
    yield section("log", "Log", log_lines(view.log), _log_link(view))
    yield section("files", "Files and exports", _files(view))


def _summary(view: RunView) -> Iterator[Markup]:
    row = view.row
    words = status_words(row.status, view.history)
    how, why = describe_stop(words, view.timeline.state.stop_reason)
    facts: list[Content] = [row.workflow, " · started ", ago(row.created_at, view.now)]
    if row.status not in FINAL and row.step:
        facts.append(f" · at {row.step}, round {row.iteration}")
    yield tag("div", tag("h1", row.name), status_mark(row.status, how), class_="title", id="status")
    yield tag("p", facts, class_="soft")
    if view.notice:
        yield tag("p", view.notice, class_="notice good-notice", role="status")
    if why or row.status is Status.INTERRUPTED:
        yield tag("p", why or row.reason, class_="why")
    yield from written_files(view.history)
    yield from who_read(view.timeline, view.history)
    if view.history is not None and view.history.goal:
        goal = one_line(view.history.goal, LONGEST_LINE * 3)
        yield tag("p", tag("b", "Goal. "), goal, class_="goal")
    yield tag("div", _actions(view), class_="actions")


def _actions(view: RunView) -> Iterator[Content]:
    row = view.row
    if row.status in FINAL:
        return
    answered = row.status is Status.WAITING and not view.requests
    if answered or row.status not in (Status.RUNNING, Status.QUEUED, Status.WAITING):
        resume = tag("button", "Resume", class_="yes")
        yield tag("form", resume, method="post", action=run_path(row.name, "resume"))
    reason = tag("label", tag("span", "Why"), tag("input", name="why"), class_="field")
    button = tag("button", "Cancel this run", class_="no")
    form = tag("form", reason, button, method="post", action=run_path(row.name, "cancel"),
               class_="inline")  # fmt: skip
    yield tag("details", tag("summary", "Cancel…"), form, class_="quiet", id="cancel")


def _needs(view: RunView) -> Iterator[Markup]:
    for request in view.requests:
        address = f"/requests/{request['number']}"
        title = one_line(str(request.get("title") or request["prompt"]), LONGEST_LINE)
        what = f"{request_word(request)} #{request['number']} of {request['step']} · "
        facts: list[Content] = [what, ago(request["opened_at"], view.now)]
        if request.get("deadline") is not None:
            facts += [" · ", tag("b", "deadline ", until(request["deadline"], view.now))]
        words = tag("div", tag("a", title, href=address, class_="name"),
                    tag("div", facts, class_="facts"))  # fmt: skip
        button = tag("a", "Review and decide", href=address, class_="button")
        yield tag("div", words, button, class_="card needs-you", id=f"needs-{request['number']}")
    if view.pending > len(view.requests):
        rest = view.pending - len(view.requests)
        yield tag("p", f"{rest:,} more requests follow as you answer.", class_="soft")


def _at_work(view: RunView) -> Iterator[Markup]:
    """Yields what agents and programs are doing now."""
    if view.row.status is not Status.RUNNING:
        return
    busy = [each for each in view.timeline.running.values() if each.kind is not EffectKind.WAIT]
    items = [
        tag("li", tag("b", each.label), f" {each.name} ", tag("span", "since ", class_="soft"),
            duration(view.now - each.started_at), class_="busy-item")
        for each in busy[:8]
    ]  # fmt: skip
    fans = view.timeline.fans.values()
    items += [tag("li", f"{fan.name}: {len(fan.done)} of {fan.size} done") for fan in fans]
    if items:
        yield tag("ul", items, class_="card working", aria_label="At work")


def _sections(view: RunView) -> Iterator[Markup]:
    history = view.history
    review = ["text", "findings", "changes"] if history and history.versions else []
    first = ["rounds", "workflow"] if review else ["workflow"]
    rest = [*(["details"] if view.details else []), "decisions", "cost", "steps", "log", "files"]
    for name in (*first, *review, *rest):
        yield tag("a", name.capitalize(), href=f"#{name}")


def _review(view: RunView, history: ReviewHistory) -> Iterator[Markup]:
    chart = rounds_chart(history.rounds) or "No round was reviewed yet."
    rounds = section("rounds", "Rounds", tag("div", chart, class_="card"))
    yield tag("div", rounds, section("workflow", "Workflow", _graph(view)), class_="columns even")
    current = history.versions[-1]
    still_open = history.open_findings()
    text = section(
        "text",
        f"The text, version {current.number}",
        _rendered_link(view.row.name, current),
        tag("div", marked_text(history, current, still_open), class_="artifact", tabindex=0,
            role="group", aria_label="The text"),
    )  # fmt: skip
    found = section("findings", "Findings", finding_groups(view.row.name, history))
    yield tag("div", text, found, class_="columns even")
    yield section("changes", "Changes", changes_html(history, view.changes))


def _rendered_link(run: str, version: Version) -> Markup | None:
    """Returns the two ways to look at a text, if one of its files is Markdown."""
    if not any(is_markdown(path) for path in version.files):
        return None
    link = tag("a", "Rendered", href=run_path(run, "rendered"))
    here = tag("span", "Source with evidence", aria_current="true")
    return tag("p", here, " · ", link, class_="small")


def finding_groups(
    run: str, history: ReviewHistory, most: int | None = MOST_CARDS
) -> Iterator[Markup]:
    """Yields the findings by status; of a long group, the rest as a link to all of them."""
    if not history.findings:
        yield tag("p", "No critic reported anything.", class_="soft")
    current = history.versions[-1]
    for status, found in by_status(history):
        title, groups = status.words.capitalize(), group_equal(found)
        full = status is FindingStatus.OPEN
        cards = [
            finding_html(history, group, current) if full else finding_line(history, group)
            for group in groups[:most]
        ]
        more = None
        if most is not None and len(groups) > most:
            words = f"All {len(found):,} {title.lower()} findings"
            more = tag(
                "p", tag("a", words, href=f"{run_path(run, 'findings')}#group-{status.value}")
            )
        summary = tag("summary", title, tag("span", f" · {len(found):,}", class_="soft"))
        yield tag("details", summary, cards, more, open=full, id=f"group-{status.value}")


def _graph(view: RunView) -> Content:
    visits: dict[str, int] = {}
    for visit in view.timeline.visits:
        visits[visit.step] = visits.get(visit.step, 0) + 1
    current = None if view.row.status in FINAL else view.row.step
    picture = workflow_graph(view.definition, current, visits)
    words = tag("details", tag("summary", "As text"), step_list(view.definition, current))
    return scrollable("The workflow's graph", picture or "It has too many steps to draw.", words)


def log_lines(lines: Sequence[LogLine]) -> Markup:
    """Returns lines of a log with their times."""
    if not lines:
        return tag("p", "Nothing yet.", class_="soft")
    rows = [
        tag("li", tag("span", moment(line.at)[-5:], class_="soft"), " ", line.text,
            class_="trouble" if line.weight is Weight.TROUBLE else None)
        for line in lines
    ]  # fmt: skip
    return tag("ol", rows, class_="log mono")


def _log_link(view: RunView) -> Markup:
    return tag("p", tag("a", "The whole log", href=run_path(view.row.name, "log")))


def _files(view: RunView) -> Iterator[Markup]:
    links = [tag("a", "Files of this run", href=run_path(view.row.name, "files"))]
    links += [
        tag("a", f"Export as {name}", href=run_path(view.row.name, "export", name))
        for name in view.exports
    ]
    yield tag("ul", [tag("li", link) for link in links], class_="links")
    if view.remedies:
        yield tag("p", "From a terminal:", class_="small soft")
        yield tag("ul", [tag("li", tag("code", each)) for each in view.remedies], class_="small")
