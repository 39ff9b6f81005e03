"""The first page: pending requests and runs."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from signoff.app.answering import open_requests, request_line
from signoff.app.project import Project
from signoff.app.runs import RunFilter, answered_runs, list_page
from signoff.core.outcome import NOT_ENDED, Status
from signoff.errors import UnknownName
from signoff.pages.document import Live
from signoff.pages.home import MOST_REQUESTS, HomeFilter, HomePage, home
from signoff.web.projects import OpenProject
from signoff.web.views.frame import show_page

PAGE_ROWS = 50
MOST_ACTIVE = 100

router = APIRouter(include_in_schema=False)


@router.get("/")
def home_page(
    request: Request,
    project: OpenProject,
    status: str = "",
    workflow: str = "",
    q: str = "",
    after: str = "",
) -> Response:
    """Shows what needs the user, and the runs."""
    chosen = HomeFilter(status, workflow.strip(), q.strip())
    # Asked before reading, so that a change in between is an event for this page.
    last = project.store.news(None).last
    page = _home(project, chosen, after)
    address = chosen.query(**({"after": after} if after else {}))
    live = Live(f"/events?after={last[0]}.{last[1]}" if last else "/events", address)
    return show_page(request, project, "Inbox and runs", home(page), here="/", live=live)


def _home(project: Project, chosen: HomeFilter, after: str) -> HomePage:
    pending = open_requests(project)
    whole = not chosen and not after
    ended = tuple(each for each in Status if each not in NOT_ENDED)
    wanted = RunFilter(
        (_status(chosen.status),) if chosen.status else () if chosen else ended,
        chosen.workflow,
        chosen.text,
    )
    listed = list_page(project, wanted, cursor=after, limit=PAGE_ROWS)
    active = list_page(project, RunFilter(tuple(NOT_ENDED)), limit=MOST_ACTIVE) if whole else None
    listed_above = {line.run for line in pending[:MOST_REQUESTS]}
    return HomePage(
        requests=[request_line(project, line) for line in pending[:MOST_REQUESTS]],
        pending=len(pending),
        active=[row for row in active.rows if row.name not in listed_above] if active else (),
        others=listed.rows,
        filter=chosen,
        now=project.clock.now(),
        following=listed.next or "",
        continued=bool(after),
        answered=frozenset(answered_runs(project)),
    )


def _status(name: str) -> Status:
    try:
        return Status(name)
    except ValueError:
        raise UnknownName("status", name, [status.value for status in Status]) from None
