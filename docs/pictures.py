"""Makes the pictures of the README from a real run of the demo: `make pictures`.

The terminal is drawn by replaying the run's journal through the live view; the report is opened in
a browser.
"""  # noqa: INP001  # a script next to the pages it serves, not a package

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from signoff.app.runs.history import events_of
from signoff.app.runs.show import show
from signoff.app.settings.project import Project, open_project
from signoff.runtime.ports import Recorded
from signoff.surfaces.cli.driving import open_review
from signoff.surfaces.cli.live import LiveView
from signoff.surfaces.cli.output import Output
from signoff.surfaces.cli.summary import print_summary
from tests.browser import open_browser

FOLDER = Path(__file__).parent / "pictures"
WIDTH = 92
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that would be loaded from another server."""


def main() -> int:
    """Runs the demo and writes both pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        if browser is None:
            sys.exit("the picture of the report needs a browser: make browser")
        demo = Path(folder) / "signoff-demo"
        command = [sys.executable, "-m", "signoff", "demo", "--kill", "--folder", str(demo)]
        subprocess.run(command, check=True)
        with open_project(demo, os.environ) as project:
            (FOLDER / "terminal.svg").write_text(draw_terminal(project))
        shown = browser.new_page(viewport={"width": 960, "height": 1240})
        shown.goto((demo / "demo.html").as_uri())
        shown.screenshot(path=FOLDER / "report.png")
    return 0


def draw_terminal(project: Project) -> str:
    """Returns what the live view leaves on the terminal, and the summary, as SVG."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    row = project.run()
    view = LiveView(console=console, open_review=lambda run: open_review(project, run, resumed=()))
    for seq, event in events_of(project, row):
        view.notice(Recorded(row.name, [event], seq))
    view.flush()
    printed = StringIO()
    with redirect_stdout(printed):
        os.chdir(project.home.root)
        print_summary(show(project, row.name), Output())
    console.print(Text(printed.getvalue().rstrip()))
    svg = console.export_svg(title="signoff run demo", theme=DIMMED_MONOKAI)
    return FONT.sub("", svg)


if __name__ == "__main__":
    sys.exit(main())
