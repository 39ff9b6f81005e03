"""The page of a run, and the pages below it: findings, log, files, exports.

Runs of every notation have one. A review adds its rounds, findings, text and changes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from signoff import plugins
from signoff.app.people.answering import answer_to_json, open_requests, request_line
from signoff.app.runs.history import FollowedRun, load_state
from signoff.app.runs.next_commands import next_commands, with_file
from signoff.app.runs.runs import cancel, current_row, list_files, read_file
from signoff.app.runs.show import logs
from signoff.app.settings.project import Project
from signoff.app.workers.hand_over import continue_run
from signoff.core.amounts import duration
from signoff.core.effects import EffectKind
from signoff.core.errors import UnknownName
from signoff.core.one_line import one_line
from signoff.core.outcome import FINAL, Outcome, Status
from signoff.core.requests import ItemState
from signoff.core.stop_reason import describe_stop, remedies
from signoff.review.pure.history import ReviewHistory, Version
from signoff.runtime.store_port import InboxLine, RunRow
from signoff.surfaces.web.route_params import (
    API,
    SANDBOX,
    OpenProject,
    Operator,
    SentForm,
    followed_runs,
)
from signoff.surfaces.web.views.frame import Live, events_path, request_words, show_page
from signoff.views.narration import LogLine, Weight, describe_answer
from signoff.views.pages import html, report
from signoff.views.pages.html import Content, Markup, tag
from signoff.views.pages.markdown import is_markdown, rendered_files
from signoff.views.pages.review import changes_html, finding_groups, marked_text

MOST_LINES = 2_000
"""Lines of a log that its page shows: the latest ones."""
MOST_CARDS = 40
"""Findings of one status that the page shows in full; the others have a page of their own."""
MOST_REQUESTS = 10
"""Pending requests that the page lists, the oldest ones."""
LONGEST_LINE = 200

router = APIRouter(include_in_schema=False)


@router.get("/runs/{name}")
def show_run(
    request: Request,
    project: OpenProject,
    name: str,
    first: Annotated[int | None, Query(alias="from")] = None,
    to: int | None = None,
    done: int | None = None,
) -> Response:
    """Shows a run."""
    row = current_row(project, project.store.row(name))
    with followed_runs(request).look(project, row) as run:
        page = _RunPage(project, row, run, project.clock.now())
        # Rendered here, not when it is sent: the next look at the run may be in another thread.
        parts = list(_run_page(page, _notice(project, name, done), (first, to)))
    address = f"{request.url.path}{f'?{request.url.query}' if request.url.query else ''}"
    live = None if row.status in FINAL else Live(events_path(row), address)
    return show_page(request, project, name, parts, live=live, wide=True)


@dataclass(frozen=True)
class _RunPage:
    """What the parts of the page are made of."""

    project: Project
    row: RunRow
    """The run with its current status."""
    run: FollowedRun
    now: float

    @property
    def history(self) -> ReviewHistory | None:
        return self.run.review


def _run_page(
    page: _RunPage, notice: str, versions: tuple[int | None, int | None]
) -> Iterator[Markup]:
    history, timeline, name = page.history, page.run.timeline, page.row.name
    pending = open_requests(page.project, name)
    yield from _summary(page, notice, answered=not pending)
    yield from _needs(page, pending)
    yield from _at_work(page)
    yield tag(
        "div", [html.tile(*each) for each in report.figures(timeline, history)], class_="tiles"
    )
    details = _details(page)
    links = [*_places(history), *(["details"] if details else []), "decisions", "cost", "steps",
             "log", "files"]  # fmt: skip
    nav = [tag("a", each.capitalize(), href=f"#{each}") for each in links]
    yield tag("nav", nav, class_="sections", aria_label="Sections of this page")
    if history is not None and history.versions:
        yield from _review(page, history)
        yield html.section("changes", "Changes", changes_html(history, name, *versions))
    else:
        yield html.section("workflow", "Workflow", _workflow(page))
    if details:
        yield html.section("details", "Details", tag("pre", details, tabindex=0))
    yield report.decisions(timeline, history)
    yield report.cost(timeline)
    yield report.steps(timeline)
    whole = tag("p", tag("a", "The whole log", href=html.run_path(name, "log")))
    yield html.section("log", "Log", _log_lines(list(page.run.log)), whole)
    yield html.section("files", "Files and exports", _files(page))


def _notice(project: Project, name: str, done: int | None) -> str:
    """Returns what an answer that was just given says, read back from the store."""
    if done is None:
        return ""
    try:
        item = project.store.item(done)
    except UnknownName:
        return ""
    if item.run != name or item.state is ItemState.OPEN:
        return ""
    return html.sentence(f"Request #{done}: {describe_answer(answer_to_json(item) or {})}")


def _details(page: _RunPage) -> str:
    """Returns what the notation of a run reports; a review is shown in full anyway."""
    notation = plugins.notation(str(page.run.definition.get("notation", "")))
    # Its sections say more than the report of its notation, and would say it twice.
    if page.history is not None or notation is None or not notation.report:
        return ""
    state = load_state(page.project, page.row).state_with_pending
    return str(plugins.load(notation.report)(state, page.run.definition).details)


def _summary(page: _RunPage, notice: str, *, answered: bool) -> Iterator[Markup]:
    row, history, timeline = page.row, page.history, page.run.timeline
    how, why = describe_stop(report.status_words(row.status, history), timeline.state.stop_reason)
    facts: list[Content] = [row.workflow, " · started ", html.ago(row.created_at, page.now)]
    if row.status not in FINAL and row.step:
        facts.append(f" · at {row.step}, round {row.iteration}")
    yield tag(
        "div", tag("h1", row.name), html.status_mark(row.status, how), class_="title", id="status"
    )
    yield tag("p", facts, class_="soft")
    if notice:
        yield tag("p", notice, class_="notice good-notice", role="status")
    if why or row.status is Status.INTERRUPTED:
        yield tag("p", why or row.reason, class_="why")
    yield from report.written_files(history)
    yield from report.who_read(timeline, history)
    if history is not None and history.goal:
        goal = one_line(history.goal, LONGEST_LINE * 3)
        yield tag("p", tag("b", "Goal. "), goal, class_="goal")
    yield tag("div", _actions(row, answered=answered), class_="actions")


def _actions(row: RunRow, *, answered: bool) -> Iterator[Content]:
    if row.status in FINAL:
        return
    # Whoever waits for an answer needs that, and would only come to the same wait again.
    waits = row.status is Status.WAITING and not answered
    if not waits and row.status not in (Status.RUNNING, Status.QUEUED):
        resume = tag("button", "Resume", class_="yes")
        yield tag("form", resume, method="post", action=html.run_path(row.name, "resume"))
    reason = tag("label", tag("span", "Why"), tag("input", name="why"), class_="field")
    button = tag("button", "Cancel this run", class_="no")
    form = tag("form", reason, button, method="post", action=html.run_path(row.name, "cancel"),
               class_="inline")  # fmt: skip
    yield tag("details", tag("summary", "Cancel…"), form, class_="quiet", id="cancel")


def _needs(page: _RunPage, pending: Sequence[InboxLine]) -> Iterator[Markup]:
    for line in pending[:MOST_REQUESTS]:
        words = request_words(request_line(page.project, line), page.now)
        address, place = f"/requests/{line.id}", f"needs-{line.id}"
        button = tag("a", "Review and decide", href=address, class_="button")
        yield tag("div", words, button, class_="card needs-you", id=place)
    rest = len(pending) - MOST_REQUESTS
    if rest > 0:
        yield tag("p", f"{rest:,} more requests follow as you answer.", class_="soft")


def _at_work(page: _RunPage) -> Iterator[Markup]:
    """Yields what agents and programs are doing now."""
    if page.row.status is not Status.RUNNING:
        return
    timeline = page.run.timeline
    busy = [each for each in timeline.running.values() if each.kind is not EffectKind.WAIT]
    items = [
        tag("li", tag("b", each.label), f" {each.name} ", tag("span", "since ", class_="soft"),
            duration(page.now - each.started_at), class_="busy-item")
        for each in busy[:8]
    ]  # fmt: skip
    fans = timeline.fans.values()
    items += [tag("li", f"{fan.name}: {len(fan.done)} of {fan.size} done") for fan in fans]
    if items:
        yield tag("ul", items, class_="card working", aria_label="At work")


def _places(history: ReviewHistory | None) -> Sequence[str]:
    """Returns the first sections of the page, which depend on whether there is a review."""
    if history is None or not history.versions:
        return ("workflow",)
    return ("rounds", "workflow", "text", "findings", "changes")


def _review(page: _RunPage, history: ReviewHistory) -> Iterator[Markup]:
    chart = report.rounds_chart(history.rounds) or "No round was reviewed yet."
    rounds = html.section("rounds", "Rounds", tag("div", chart, class_="card"))
    yield tag(
        "div", rounds, html.section("workflow", "Workflow", _workflow(page)), class_="columns even"
    )
    current, name = history.versions[-1], page.row.name
    text = html.section(
        "text",
        f"The text, version {current.number}",
        _rendered_link(name, current),
        tag("div", marked_text(history, current, history.open_findings()), class_="artifact",
            tabindex=0, role="group", aria_label="The text"),
    )  # fmt: skip
    found = html.section("findings", "Findings", finding_groups(history, name, MOST_CARDS))
    yield tag("div", text, found, class_="columns even")


def _rendered_link(run: str, version: Version) -> Markup | None:
    """Returns the two ways to look at a text, if one of its files is Markdown."""
    if not any(is_markdown(path) for path in version.files):
        return None
    link = tag("a", "Rendered", href=html.run_path(run, "rendered"))
    here = tag("span", "Source with evidence", aria_current="true")
    return tag("p", here, " · ", link, class_="small")


def _workflow(page: _RunPage) -> Markup:
    """Returns the steps and where each leads; the one where the run is stands out."""
    visits = Counter(visit.step for visit in page.run.timeline.visits)
    current = None if page.row.status in FINAL else page.row.step
    rows = []
    for step in page.run.definition.get("steps") or ():
        name = str(step["id"])
        edges = (step.get("next") or {}).items()
        ways = "; ".join(f"{_edge_name(str(way))} → {_goal(edge)}" for way, edge in edges)
        times = f" ({visits[name]}x)" if visits[name] > 1 else ""
        rows.append(tag("li", tag("b", name) if name == current else name, f"{times}: {ways}"))
    return tag("ol", rows, class_="card small")


def _edge_name(way: str) -> str:
    return "otherwise" if way == Outcome.DEFAULT else way.removeprefix("gate:")


def _goal(edge: Sequence[object] | None) -> str:
    goal = edge[0] if edge else None
    return "completed" if goal is None else str(goal).replace("_", " ")


def _log_lines(lines: Sequence[LogLine]) -> Markup:
    if not lines:
        return tag("p", "Nothing yet.", class_="soft")
    rows = [
        tag("li", tag("span", html.moment(line.at)[-5:], class_="soft"), " ", line.text,
            class_="trouble" if line.weight is Weight.TROUBLE else None)
        for line in lines
    ]  # fmt: skip
    return tag("ol", rows, class_="log mono")


def _files(page: _RunPage) -> Iterator[Markup]:
    row = page.row
    links = [tag("a", "Files of this run", href=html.run_path(row.name, "files"))]
    links += [
        tag("a", f"Export as {form}", href=f"{API}{html.run_path(row.name, 'exports', form)}")
        for form in sorted(plugins.paths("exports"))
    ]
    yield tag("ul", [tag("li", link) for link in links], class_="links")
    ways_on = remedies(row.name, row.status, page.run.timeline.state.stop_reason, row.due_at)
    if commands := next_commands(with_file(ways_on, row.target)):
        yield tag("p", "From a terminal:", class_="small soft")
        yield tag("ul", [tag("li", tag("code", each)) for each in commands], class_="small")


def _below(request: Request, project: Project, name: str, title: str, *parts: Content) -> Response:
    """Returns a page below that of a run."""
    back = tag("p", tag("a", f"← {name}", href=html.run_path(name)), class_="small")
    return show_page(request, project, title, back, tag("h1", title), parts)


@router.get("/runs/{name}/rendered")
def show_rendered(
    request: Request, project: OpenProject, name: str, version: int | None = None
) -> Response:
    """Shows the text of a review as its readers will see it."""
    row = current_row(project, project.store.row(name))
    with followed_runs(request).look(project, row) as run:
        history = run.review
        numbers = {each.number: each for each in history.versions} if history else {}
        chosen = numbers.get(version or max(numbers, default=0))
        if history is None or chosen is None:
            raise UnknownName("version", str(version or ""), map(str, numbers))
        files = {history.name_of(path): text for path, text in chosen.files.items()}
    parts = rendered_files(files, f"{html.run_path(name)}#text")
    return _below(request, project, name, f"The text of {name}, version {chosen.number}", parts)


@router.get("/runs/{name}/findings")
def show_findings(request: Request, project: OpenProject, name: str) -> Response:
    """Shows every finding of a review."""
    row = current_row(project, project.store.row(name))
    with followed_runs(request).look(project, row) as run:
        history = run.review
        found = list(finding_groups(history, name)) if history else ()
    none = tag("p", "It has no review.")
    return _below(request, project, name, f"Findings of {name}", found or none)


@router.get("/runs/{name}/log")
def show_log(request: Request, project: OpenProject, name: str) -> Response:
    """Shows the log of a run."""
    lines = [line for entry in logs(project, name) for line in entry.lines]
    left_out = len(lines) - MOST_LINES
    note = tag("p", f"{left_out:,} earlier lines are left out.") if left_out > 0 else None
    return _below(request, project, name, f"Log of {name}", note, _log_lines(lines[-MOST_LINES:]))


@router.get("/runs/{name}/files")
def show_files(request: Request, project: OpenProject, name: str) -> Response:
    """Lists the files of a run, each with its size in bytes."""
    rows = [
        (tag("a", path, href=html.run_path(name, "files", *path.split("/"))), f"{size:,}")
        for path, size in list_files(project, project.store.row(name).name)
    ]
    found = html.scrollable("Files", html.table(("File", "Bytes"), rows, numbers=1))
    none = tag("p", "This run has no files.", class_="soft")
    return _below(request, project, name, f"Files of {name}", found if rows else none)


@router.get("/runs/{name}/files/{path:path}")
def show_file(project: OpenProject, name: str, path: str) -> Response:
    """Sends a file of a run as plain text, whatever it contains."""
    # As text whatever it is called: a browser must never run what a model wrote.
    content = read_file(project, project.store.row(name).name, path)
    return Response(content, media_type="text/plain", headers={"content-security-policy": SANDBOX})


@router.post("/runs/{name}/cancel")
def cancel_run(project: OpenProject, caller: Operator, name: str, form: SentForm) -> Response:
    """Cancels a run."""
    why = form.one("why").strip()
    # This thread has no event loop, and the reader is told when nothing of the run is active.
    asyncio.run(cancel(project, name, f"by {caller.name}{why and f': {why}'}"))
    return RedirectResponse(html.run_path(name), 303)


@router.post("/runs/{name}/resume")
def resume_run(project: OpenProject, _caller: Operator, name: str) -> Response:
    """Hands a run to a worker that continues it."""
    continue_run(project, project.store.row(name).name)
    return RedirectResponse(html.run_path(name), 303)
