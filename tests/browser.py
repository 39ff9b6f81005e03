"""Finds a browser for tests and pictures of pages, and opens it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

NAMES = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable", "chrome", "microsoft-edge"),
)
VARIABLE = "SIGNOFF_TEST_BROWSER"
"""The environment variable that names another one."""
OPTIONS = (
    # It needs neither a display nor privileges.
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    # It asks no other machine for updates on its own,
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps"),
    # and what an ordinary Chromium asks for in spite of that does not leave this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def find_browser() -> str | None:
    """Returns the path of a browser: one of this machine, else Playwright's own; None without."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        return _find(playwright)


@contextmanager
def open_browser() -> Iterator[Browser | None]:
    """Opens a browser for as long as the caller needs it; None if there is none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = _find(playwright)
        if path is None:
            yield None
            return
        browser = playwright.chromium.launch(executable_path=path, args=list(OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


def _find(playwright: Playwright) -> str | None:
    named = [os.environ.get(VARIABLE), *map(shutil.which, NAMES)]
    found = [each for each in (*named, playwright.chromium.executable_path) if each]
    return next((each for each in found if Path(each).exists()), None)


def main() -> int:
    """Tells whether there is a browser: `make browser` fetches one otherwise."""
    return 0 if find_browser() is not None else 1


if __name__ == "__main__":
    sys.exit(main())
