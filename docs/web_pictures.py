"""Makes the pictures of docs/web.md from real runs and a real server: `make web-pictures`.

The agents are scripted, so it needs no account; everything else is what users see.
"""  # noqa: INP001  # a script next to the pages it serves, not a package

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser import open_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = Path(__file__).parent / "pictures"
SIGNOFF = [sys.executable, "-m", "signoff"]

GUIDE = """# Backups

The server always keeps a copy of every file. Backups are made at night.

## Restore a file

1. Stop the server.
2. Utilize the restore functionality in order to effectuate the recovery of the file.
3. Start the server.

Restoring never takes longer than a minute.

## Costs

Storage costs money. Old copies are deleted after 30 days, which is enough for most people.
"""
FLOW = """
description: Reviews the guide, fixes what is found, and asks you to sign it off.
artifact: {path: docs}
constraints:
  inline:
    honest: Promise nothing that cannot be kept.
    clear: Use short, plain sentences.
    complete: Every procedure says how to check that it worked.
output: {write_back: on_approval}
workflow:
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: apply, loop_to: review}
  - {step: sign_off, name: approval}
"""
RELEASE = """
from typing import Any
from signoff import Outcome, Question, StepContext, StepDef, Workflow

async def announce(context: StepContext) -> tuple[Outcome, dict[str, Any]]:
    await context.wait(Question("Who should hear about version 1.2 first?"), key="who")
    return Outcome.OK, {}

WORKFLOW = Workflow(
    "release",
    StepDef("announce", "Tell the world", handler=announce, next={Outcome.OK: None}),
    description="Prepares a release.",
)
"""


def _issue(evidence: str, finding: str, severity: str, text: str = "") -> dict[str, object]:
    edit = {"edit": {"kind": "replace", "find": evidence, "text": text}} if text else {}
    issue = {"path": "docs/guide.md", "evidence": evidence, "finding": finding}
    return {**issue, "severity": severity, **edit}


ROUNDS = (
    ("honest", [
        _issue("The server always keeps a copy of every file.",
               "A disk can fail while a copy is made, so no server always keeps one.", "HIGH",
               "The server copies every file that changed since the last backup."),
        _issue("Restoring never takes longer than a minute.",
               "The time depends on the size of the file.", "CRITICAL",
               "A file of 100 MB is restored in about a minute."),
    ]),
    ("clear", [
        _issue("Utilize the restore functionality in order to effectuate the recovery of the file.",
               "Thirteen words for an instruction that needs three.", "HIGH",
               "Run `restore FILE`."),
        _issue("which is enough for most people", "Who are most people?", "MEDIUM"),
    ]),
    ("complete", []),
    ("complete", [
        _issue("Start the server.", "How does the reader see that the file is back?", "HIGH",
               "Start the server, and open the file to check it."),
    ]),
)  # fmt: skip


def main() -> int:
    """Runs two workflows and writes the pictures of their pages."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        if browser is None:
            sys.exit("the pictures need a browser: make browser")
        project = Path(folder) / "handbook"
        _write(project)
        _run(project, ".signoff/flows/guide.yaml", "backup-guide")
        _run(project, ".signoff/flows/release.py", "release-1.2")
        with _served(project) as link:
            _take(browser, link)
    return 0


def _write(project: Path) -> None:
    passes = {"overall": "PASS", "issues": []}
    rules = [
        {"step": "review", "key": key, "times": 1,
         "json": {"overall": "FAIL", "issues": issues} if issues else passes}
        for key, issues in ROUNDS
    ]  # fmt: skip
    script = {"version": 1, "rules": [*rules, {"step": "review", "json": passes}, {"text": "ok"}]}
    for name, text in {
        "docs/guide.md": GUIDE,
        ".signoff/config.yaml": "version: 1\nagents:\n  claude: {kind: scripted, "
        "file: .signoff/script.yaml}\n",
        ".signoff/script.yaml": json.dumps(script),
        ".signoff/flows/guide.yaml": FLOW,
        ".signoff/flows/release.py": RELEASE,
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)


def _run(project: Path, target: str, name: str) -> None:
    command = [*SIGNOFF, "run", target, "--name", name, "--no-input"]
    done = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True)
    if done.returncode != 10:
        sys.exit(f"{name} does not wait for a human:\n{done.stderr}")


@contextmanager
def _served(project: Path) -> Iterator[str]:
    command = [*SIGNOFF, "web", "--port", "0", "--json"]
    environment = {**os.environ, "LOGNAME": "ann"}
    with subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        try:
            line = server.stdout.readline() if server.stdout is not None else ""
            yield json.loads(line)["link"]
        finally:
            server.kill()


def _take(browser: Browser, link: str) -> None:
    base = link.partition("/login")[0]
    context = browser.new_context(viewport={"width": 1100, "height": 760}, color_scheme="light")
    page = context.new_page()
    page.goto(link)
    page.locator("#live-state", has_text="live").wait_for()
    page.screenshot(path=FOLDER / "web-home.png")
    page.goto(f"{base}/runs/backup-guide")
    page.locator("#live-state", has_text="live").wait_for()
    top = {"x": 0, "y": 0, "width": 1100, "height": 1250}
    page.screenshot(path=FOLDER / "web-run.png", clip=top, full_page=True)
    page.goto(f"{base}/requests/1")
    page.locator("#live-state", has_text="live").wait_for()
    page.screenshot(path=FOLDER / "web-decide.png")
    page.set_viewport_size({"width": 390, "height": 760})
    page.emulate_media(color_scheme="dark")
    page.goto(f"{base}/runs/backup-guide#changes")
    page.screenshot(path=FOLDER / "web-phone.png")
    context.close()


if __name__ == "__main__":
    sys.exit(main())
