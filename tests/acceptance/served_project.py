"""A project whose page is served, and a browser that is logged in there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from signoff.app.runs.run_records import living_workers
from signoff.app.settings.project import open_project
from tests.acceptance.cli_project import ENVIRONMENT, PROGRAM, worker_for_server
from tests.browser import open_browser
from tests.run_stores import store_variables

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

MILLISECONDS = 60_000
"""How long to wait for what a page shows; the machine may be busy."""
SETTINGS = "version: 1\nagents:\n  claude: {kind: scripted, file: .signoff/script.yaml}\n"


class ServedProject:
    """The folder, its page, and windows of one browser."""

    def __init__(
        self, folder: Path, environment: dict[str, str], browser: Browser, link: str
    ) -> None:
        self.folder, self.environment = folder, environment
        self.base = link.partition("/login")[0]
        self.requests: list[str] = []
        """The addresses of all requests that pages have made."""
        self._browser = browser
        with browser.new_context() as context:
            context.new_page().goto(link)
            self._cookies: Any = context.cookies()

    def window(self, **options: Any) -> BrowserContext:
        """Opens a window of its own, logged in."""
        context = self._browser.new_context(**options)
        context.set_default_timeout(MILLISECONDS)
        context.on("request", lambda request: self.requests.append(request.url))
        context.add_cookies(self._cookies)
        return context

    def signoff(self, *arguments: str) -> str:
        """Runs a command and returns what it prints."""
        done = subprocess.run(
            [PROGRAM, *arguments], cwd=self.folder, env=self.environment, capture_output=True
        )
        return done.stdout.decode()

    def json(self, *arguments: str) -> Any:
        """Returns what a command prints as JSON."""
        return json.loads(self.signoff(*arguments, "--json"))


@contextmanager
def served_project(folder: Path, files: Mapping[str, str]) -> Iterator[ServedProject]:
    """Serves a project with these files; skips the test without a browser."""
    for name, text in {".signoff/config.yaml": SETTINGS, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    environment = {**ENVIRONMENT, **store_variables(), "HOME": str(folder / "home")}
    with open_browser() as browser:
        if browser is None:
            pytest.skip("no browser is installed: make browser")
        from playwright.sync_api import expect

        expect.set_options(timeout=MILLISECONDS)
        command = [PROGRAM, "web", "--port", "0", "--json"]
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE
        ) as server:
            try:
                assert server.stdout is not None
                link = json.loads(server.stdout.readline())["link"]
                with worker_for_server(folder, environment):
                    yield ServedProject(folder, environment, browser, link)
            finally:
                server.kill()
                _end_workers(folder, environment)


def _end_workers(folder: Path, environment: dict[str, str]) -> None:
    with open_project(folder, environment) as project:
        for worker in living_workers(project.store):
            os.kill(worker.owner.pid, signal.SIGKILL)
