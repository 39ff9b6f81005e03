"""What the routes of all pages share: the frame around a page, its answer, and form fields."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, Response

from signoff.app.hand_over import ensure_worker, wake
from signoff.app.history import FollowedRuns
from signoff.app.project import Project
from signoff.errors import UsageError
from signoff.pages.document import Frame, Live, document
from signoff.pages.html import Content
from signoff.pages.parts import run_path
from signoff.runtime.store_port import RunRow
from signoff.web.access import Caller
from signoff.web.guard import CALLER
from signoff.web.projects import ProjectPool

MOST_FIELDS = 500
"""Fields of a form; the largest one has a few for each question that it asks."""


class FormFields:
    """The fields of a form that a browser has sent."""

    def __init__(self, body: bytes) -> None:
        text = body.decode("utf-8", "replace")
        try:
            self._values = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError as error:
            raise UsageError(f"a form has at most {MOST_FIELDS} fields") from error

    def one(self, name: str) -> str:
        """Returns the value of a field; empty if it was not sent."""
        # Browsers send line breaks as CR LF, whatever the text had.
        return self._values.get(name, [""])[0].replace("\r\n", "\n")

    def all(self, name: str) -> list[str]:
        """Returns the values of a field that may have several."""
        return self._values.get(name, [])

    @property
    def names(self) -> list[str]:
        """The names of all fields."""
        return list(self._values)

    def __contains__(self, name: str) -> bool:
        """Whether a field was sent."""
        return name in self._values


async def _read_form(request: Request) -> FormFields:
    return FormFields(await request.body())


SentForm = Annotated[FormFields, Depends(_read_form)]
"""The type of a route's parameter that gets the fields of a form."""


def caller_of(request: Request) -> Caller:
    """Returns who sent a request; the guard lets no page be opened by anyone else."""
    caller: Caller = request.scope[CALLER]
    return caller


def projects_of(request: Request) -> ProjectPool:
    """Returns the open projects of this server."""
    pool: ProjectPool = request.app.state.projects
    return pool


def followed_runs(request: Request) -> FollowedRuns:
    """Returns the runs that this server keeps in memory."""
    runs: FollowedRuns = request.app.state.followed
    return runs


def continue_run(project: Project, run: str) -> None:
    """Hands a run to a worker that continues it."""
    wake(project, run)
    ensure_worker(project)


def events_path(row: RunRow) -> str:
    """Returns the address of the events of a run since its page was made."""
    return f"{run_path(row.name, 'events')}?after={row.id}.{row.head}"


def show_page(
    request: Request,
    project: Project,
    title: str,
    *main: Content,
    here: str = "",
    live: Live | None = None,
    wide: bool = False,
    status: int = 200,
) -> Response:
    """Returns a whole page."""
    waiting = len(project.store.waiting())
    frame = Frame(project.home.root.name, caller_of(request).name, waiting, here)
    page = document(frame, title, *main, live=live, wide=wide)
    return HTMLResponse(page.encode("utf-8", "replace"), status)
