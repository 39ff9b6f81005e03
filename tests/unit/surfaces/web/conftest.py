from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp

from signoff.app.settings.home import init_home
from signoff.app.settings.project import Project
from signoff.app.settings.settings import Settings
from signoff.store.sqlite import MemoryStore
from signoff.surfaces.web.access import Access, AccessScope, cookie_name
from signoff.surfaces.web.server import create_app
from signoff.testing import FrozenClock

BASE = "http://127.0.0.1:8717"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project in memory, at a standstill in time."""
    with project_in(tmp_path) as opened:
        yield opened


def project_in(folder: Path) -> Project:
    """A new project in memory, for a test that needs several."""
    home = init_home(folder, {}).home
    return Project(home, Settings(), MemoryStore(), folder, FrozenClock())


@pytest.fixture
def access(project: Project) -> Iterator[Access]:
    opened = Access.of(project.home)
    yield opened
    opened.close()


@pytest.fixture
def app(project: Project, access: Access) -> ASGIApp:
    return create_app(project, access)


@pytest.fixture
def session(project: Project, access: Access) -> str:
    """The cookie of a user who is logged in."""
    return session_of(project, access)


def session_of(project: Project, access: Access) -> str:
    secret = access.open_session(access.new_link("ann"))
    return f"{cookie_name(project.home)}={secret}"


@pytest.fixture
async def browser(app: ASGIApp, session: str) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that is logged in, and says where its requests come from."""
    headers = {"cookie": session, "sec-fetch-site": "same-origin", "origin": BASE}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as client:
        yield client


@pytest.fixture
async def program(app: ASGIApp, access: Access) -> AsyncIterator[httpx.AsyncClient]:
    """A program with a token that may do everything a human may."""
    token = access.new_token("script", AccessScope.DECIDE)
    headers = {"authorization": f"Bearer {token}"}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as client:
        yield client


@pytest.fixture
async def stranger(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a session or a token."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        yield client
