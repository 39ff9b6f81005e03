"""A project with a flow that is reviewed, fixed and signed off, by scripted agents."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from signoff.app.runs.start import resume
from signoff.app.settings.home import init_home
from signoff.app.settings.project import Project
from signoff.app.settings.settings import load_settings
from signoff.runtime.store_port import Store

TARGET = ".signoff/flows/slogan.yaml"
FLOW = """\
goal: A slogan for a coffee shop.
constraints:
  inline:
    modest: It promises nothing that cannot be kept.
max_iterations: 5
workflow:
  - {step: generate, name: draft}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: apply, loop_to: review}
  - {step: sign_off, name: sign}
"""
SETTINGS = "version: 1\nagents:\n  claude: {kind: scripted, file: .signoff/script.json}\n"
ISSUE = {
    "evidence": "The best coffee of the world.",
    "finding": "No one can prove that <script>alert(1)</script>.",
    "rule_id": "modest",
    "severity": "HIGH",
    "edit": {"kind": "replace", "find": "The best coffee of the world.", "text": "Good coffee."},
}
RULES = [
    {"step": "draft", "text": "The best coffee of the world.\n"},
    {"step": "review", "times": 1, "json": {"overall": "FAIL", "issues": [ISSUE]}},
    {"step": "review", "json": {"overall": "PASS", "issues": []}},
]


def write_project(folder: Path) -> None:
    """Writes the project's files."""
    home = init_home(folder, {}).home
    (home.flows / "slogan.yaml").write_text(FLOW)
    home.config.write_text(SETTINGS)
    (home.path / "script.json").write_text(json.dumps({"version": 1, "rules": RULES}))


@contextmanager
def review_project(folder: Path, store: Store) -> Iterator[Project]:
    """Opens such a project."""
    write_project(folder)
    home = init_home(folder, {}).home
    with Project(home, load_settings(home, {}), store, folder) as opened:
        yield opened


async def work(project: Project, run: str) -> None:
    """Does what a worker does with a run that was handed over."""
    await resume(project, run)
