"""What routes ask for as parameters: an open project, a caller with rights, the fields of a form.

A call to the database holds its thread, so requests are answered in threads, and each of them has a
connection to itself meanwhile. Connections are opened as they are needed, and requests wait for one
without holding a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Annotated, TypeVar
from urllib.parse import parse_qs

from anyio.to_thread import run_sync
from fastapi import Depends, Request

from signoff.app.runs.history import FollowedRuns
from signoff.app.settings.project import Project
from signoff.core.errors import NotAllowed, StoreError, UsageError
from signoff.surfaces.web.access import AccessScope, Caller
from signoff.surfaces.web.guard import CALLER, SAFE_METHODS, missing_scope

API = "/api/v1"
"""What the addresses of the REST interface begin with."""
SANDBOX = "sandbox; default-src 'none'"
"""The policy of a document that was not made here: it may do nothing."""
MOST_PROJECTS = 8
"""Requests that read or write the database at the same time; more take turns."""
MOST_FIELDS = 500
"""Fields of a form; the largest one has a few for each question that it asks."""

T = TypeVar("T")


class ProjectPool:
    """Projects that are open, each used by one request at a time."""

    def __init__(self, project: Project, size: int = MOST_PROJECTS) -> None:
        """`project` says where to open further ones; it is never handed out."""
        self._first = project
        self._free: list[Project] = []
        self._turns = asyncio.Semaphore(size)
        # A write waits while another process has the database locked; reading continues meanwhile.
        self._writers = asyncio.Semaphore(max(1, size // 2))

    @asynccontextmanager
    async def lend(self, *, writes: bool = False) -> AsyncIterator[Project]:
        """Lends an open project; those that write get at most half of them."""
        async with self._writers if writes else nullcontext(), self._turns:
            project = await self._take()
            try:
                yield project
            except BaseException:
                # Whatever happened, the next request gets a connection without a past.
                await run_sync(project.store.close)
                raise
            # Only after a success: a connection may be in the middle of something after an error.
            self._free.append(project)

    async def call(self, function: Callable[[Project], T]) -> T:
        """Calls a function with an open project in a thread and returns its result."""
        async with self.lend() as project:
            return await run_sync(function, project)

    def close(self) -> None:
        """Closes the projects that no request uses."""
        for project in self._free:
            project.store.close()
        self._free.clear()

    async def _take(self) -> Project:
        if self._free:
            with suppress(StoreError):
                return await run_sync(_checked, self._free.pop())
        # If the database cannot be used at all, opening it says why.
        return await run_sync(self._open)

    def _open(self) -> Project:
        project = replace(self._first, store=self._first.store.reopen(), observers=None)
        # A file is checked whenever it is opened, a server's tables only the first time.
        return project if project.store.local_file() is not None else _checked(project)


def _checked(project: Project) -> Project:
    """Returns a project if its connection can be used; closes it and raises otherwise.

    A server runs for weeks. Meanwhile the file may be restored from a backup, and a newer signoff
    may have migrated the database.
    """
    try:
        project.store.changes()
    except StoreError:
        project.store.close()
        raise
    return project


async def _lend_project(request: Request) -> AsyncIterator[Project]:
    pool: ProjectPool = request.app.state.projects
    async with pool.lend(writes=request.method not in SAFE_METHODS) as project:
        yield project


# The project is given back before the response is sent: a slow reader must not keep it.
OpenProject = Annotated[Project, Depends(_lend_project, scope="function")]
"""The type of a route's parameter that gets an open project; write such routes without `async`."""


def caller_of(request: Request) -> Caller:
    """Returns who sent a request; the guard lets nobody in whom it does not know."""
    caller: Caller = request.scope[CALLER]
    return caller


def _needs(scope: AccessScope) -> Callable[[Request], Caller]:
    def need(request: Request) -> Caller:
        caller = caller_of(request)
        refusal = missing_scope(caller, scope)
        if refusal is not None:
            raise NotAllowed(refusal.message, remedy=refusal.remedies)
        return caller

    return need


# A session has every scope; a token has the one it was made with.
Operator = Annotated[Caller, Depends(_needs(AccessScope.OPERATE))]
"""May start, cancel and resume runs."""
Decider = Annotated[Caller, Depends(_needs(AccessScope.DECIDE))]
"""May answer requests; never an agent."""


class FormFields:
    """The fields of a form that a browser has sent."""

    def __init__(self, body: bytes) -> None:
        text = body.decode("utf-8", "replace")
        try:
            # Only this encoding is read: parsers of multipart bodies have a history of holes.
            self.values = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError as error:
            raise UsageError(f"a form has at most {MOST_FIELDS} fields") from error

    def one(self, name: str) -> str:
        """Returns the value of a field; empty if it was not sent."""
        # Browsers send line breaks as CR LF, whatever the text had.
        return self.values.get(name, [""])[0].replace("\r\n", "\n")


async def _read_form(request: Request) -> FormFields:
    return FormFields(await request.body())


SentForm = Annotated[FormFields, Depends(_read_form)]
"""The type of a route's parameter that gets the fields of a form."""


def followed_runs(request: Request) -> FollowedRuns:
    """Returns the runs that this server keeps in memory."""
    runs: FollowedRuns = request.app.state.followed
    return runs
