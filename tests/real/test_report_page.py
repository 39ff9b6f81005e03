"""The report in a real browser: it loads nothing and runs nothing."""

import json
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.unit.flows.harness import fails, issue, passes
from tests.unit.pages.test_report import HOSTILE, page, played

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))), None
)
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --disable-default-apps"
).split()

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed: reports are not opened"),
]

PROBE = "<script>document.title = 'ran';</script>"
IMAGE = "<img src=http://127.0.0.1:9/leak>"


def _run_browser(command: list[str]) -> "subprocess.CompletedProcess[str]":
    """Runs the browser; on a busy machine it sometimes waits forever for one of its processes."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS / 2)
    except subprocess.TimeoutExpired:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def browse(folder: Path, text: str) -> tuple[str, set[str]]:
    """Opens a page; returns what the browser made of it, and the addresses that it asked for."""
    (folder / "page.html").write_text(text)
    options = [f"--user-data-dir={folder / 'profile'}", f"--log-net-log={folder / 'net.json'}"]
    # Nothing may leave the machine, whatever the browser wants on its own.
    resolver = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    address = (folder / "page.html").as_uri()
    command = [str(CHROMIUM), *QUIET, resolver, *options, "--dump-dom", address]
    done = _run_browser(command)
    assert done.returncode == 0, done.stderr
    events = json.loads((folder / "net.json").read_text())["events"]
    asked = {e["params"]["url"] for e in events if "url" in (e.get("params") or {})}
    hosts = {
        each: urlsplit(each).hostname or "" for each in asked if each.startswith(("http", "ws"))
    }
    return done.stdout, {each for each, host in hosts.items() if not host.endswith("google.com")}


async def test_a_report_makes_no_request_and_runs_nothing(tmp_path: Path) -> None:
    """It is sent by mail and opened by people who did not write it."""
    text = f"{HOSTILE} {PROBE} {IMAGE}"
    found = fails(issue(text, evidence=IMAGE))
    made = page(await played(tmp_path, [text, found, f"# calm {HOSTILE}", passes()]))

    dom, addresses = browse(tmp_path, made)

    assert "<title>run:" in dom
    assert addresses == set()


def test_requests_and_scripts_of_other_pages_are_noticed(tmp_path: Path) -> None:
    """A check that finds nothing would let every page pass."""
    dom, addresses = browse(tmp_path, f"<title>page</title>{PROBE}{IMAGE}")

    assert "<title>ran</title>" in dom
    assert addresses == {"http://127.0.0.1:9/leak"}
