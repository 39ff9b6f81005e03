"""The report in a real browser: it loads nothing and runs nothing."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.browser import OPTIONS, find_browser
from tests.patience import PATIENCE_SECONDS
from tests.unit.review.flow.harness import fails, issue, passes
from tests.unit.views.pages.test_report import HOSTILE, page, played

pytestmark = [pytest.mark.real, pytest.mark.slow]

PROBE = "<script>document.title = 'ran';</script>"
IMAGE = "<img src=http://127.0.0.1:9/leak>"
FONT = "<link rel=stylesheet href=https://fonts.googleapis.com/leak>"


@pytest.fixture(scope="module")
def browser() -> str:
    """The path of a browser; its log has connections too, which Playwright does not report."""
    path = find_browser()
    if path is None:
        pytest.skip("no browser is installed: make browser")
    return path


def browse(browser: str, folder: Path, text: str) -> tuple[str, set[str]]:
    """Opens a page; returns what the browser made of it, and the addresses that it asked for."""
    (folder / "page.html").write_text(text)
    options = [f"--user-data-dir={folder / 'profile'}", f"--log-net-log={folder / 'net.json'}"]
    address = (folder / "page.html").as_uri()
    done = _run_browser([browser, "--headless", *OPTIONS, *options, "--dump-dom", address])
    assert done.returncode == 0, done.stderr
    events = json.loads((folder / "net.json").read_text())["events"]
    logged = [params for each in events if "url" in (params := each.get("params") or {})]
    # An ordinary Chromium asks for updates and the time on its own: no page is their initiator.
    own = {each["url"] for each in logged if each.get("initiator") == "not an origin"}
    asked = {each["url"] for each in logged if each["url"].startswith(("http", "ws"))}
    return done.stdout, asked - own


def _run_browser(command: list[str]) -> "subprocess.CompletedProcess[str]":
    """Runs the browser; on a busy machine it sometimes waits forever for one of its processes."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS / 2)
    except subprocess.TimeoutExpired:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


async def test_a_report_makes_no_request_and_runs_nothing(browser: str, tmp_path: Path) -> None:
    """It is sent by mail and opened by people who did not write it."""
    text = f"{HOSTILE} {PROBE} {IMAGE} {FONT}"
    found = fails(issue(text, evidence=IMAGE))
    made = page(await played(tmp_path, [text, found, f"# calm {HOSTILE}", passes()]))

    dom, addresses = browse(browser, tmp_path, made)

    assert "<title>run:" in dom
    assert addresses == set()


def test_requests_and_scripts_of_other_pages_are_noticed(browser: str, tmp_path: Path) -> None:
    """A check that finds nothing would let every page pass."""
    dom, addresses = browse(browser, tmp_path, f"<title>page</title>{PROBE}{IMAGE}{FONT}")

    assert "<title>ran</title>" in dom
    assert addresses == {"http://127.0.0.1:9/leak", "https://fonts.googleapis.com/leak"}
