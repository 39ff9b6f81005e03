"""The demo: a small separate project in which a model writes and checks review.

Its files come from `signoff/demo/`. Once written they belong to the user: running the
demo again starts another run with the files as they are.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff.app.history import events_of
from signoff.app.home import Home, write_new
from signoff.app.presets import init_project
from signoff.app.settings import load_settings
from signoff.app.trust import all_lines
from signoff.core.effects import EffectKind
from signoff.core.events import EffectFinished, EffectStarted, Event, StepFinished
from signoff.documents.regular_files import translate_write_errors
from signoff.documents.trust import remember
from signoff.errors import UsageError
from signoff.remedies import PassOption
from signoff.runtime.home_folder import FOLDER, VARIABLE
from signoff.runtime.ports import Notice, Recorded

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from signoff.app.project import Project
    from signoff.app.start import StartPlan
    from signoff.runtime.ports import Observer
    from signoff.runtime.result import RunResult

DEFAULT_FOLDER = "signoff-demo"
"""The default folder of the demo project."""
FLOW = "demo"
GOAL = "goal.yaml"
CHECKS = "demo_checks.py"
WRITER = "writer"
"""The role that another agent can take over."""


@dataclass(frozen=True)
class DemoRun:
    """A demo that is ready to run."""

    project: Project
    plan: StartPlan
    name: str
    """The name of the new run."""


def prepare_run(
    folder: Path, environment: Mapping[str, str], command_line: Mapping[str, Any] | None = None
) -> DemoRun:
    """Creates the demo project if needed and prepares a run with a new name."""
    from signoff.app.start import plan

    home = prepare_project(folder)
    # The demo must not be created in a home that the environment names.
    own = {name: value for name, value in environment.items() if name != VARIABLE}
    planned = plan(home.root, own, FLOW, {}, command_line=command_line, options={"goal": GOAL})
    project = planned.open(home.root, own)
    return DemoRun(project, planned, _free_name(project))


async def drive_run(demo: DemoRun, agent: str | None, observers: Sequence[Observer]) -> RunResult:
    """Drives the run to its end, optionally with another agent as the writer."""
    from signoff.app.start import start

    return await start(
        demo.project,
        demo.plan.target,
        {},
        name=demo.name,
        limits=demo.plan.own_limits,
        switch={WRITER: agent} if agent else None,
        observers=observers,
    )


def prepare_project(folder: Path) -> Home:
    """Creates the demo project or reuses an existing one; refuses any other non-empty folder."""
    home = Home(folder / FOLDER)
    is_new = not home.path.exists()
    if folder.exists() and not _is_demo(home) and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder} exists and is not a demo; choose another folder",
            remedy=PassOption("folder", "DIR"),
        )
    with translate_write_errors(folder):
        home.path.mkdir(parents=True, exist_ok=True, mode=0o755)
        # Written first: files are never overwritten, and `init_project` writes default settings.
        for path, text in _files(home):
            path.parent.mkdir(exist_ok=True, mode=0o755)
            write_new(path, text)
    created = init_project(folder, {}).home
    if is_new:
        remember(created.path, all_lines(created, load_settings(created, {})), os.environ)
    return created


def what_is_missing(environment: Mapping[str, str]) -> tuple[bool, bool]:
    """Returns whether the local runtime and whether the model's weights are missing."""
    from signoff.agents.weights import State
    from signoff.app.models import DEFAULT, can_run_models, list_models

    states = {model.name: model.state for model in list_models(environment)}
    return not can_run_models(), states[DEFAULT] is not State.READY


class DieOnce:
    """Kills its own process, as a power cut would, once the first fix is recorded."""

    def notice(self, notice: Notice) -> None:
        """Kills the process at the end of the first fix."""
        if isinstance(notice, Recorded) and any(map(_ends_fix, notice.events)):
            os.kill(os.getpid(), signal.SIGKILL)


def _ends_fix(event: Event) -> bool:
    record = event.delta.get("set", {}).get("step") if isinstance(event, StepFinished) else None
    return isinstance(record, Mapping) and record.get("kind") == "refine"


def repeated_calls(project: Project, name: str) -> tuple[int, int]:
    """Returns how many calls a run has finished, and how many of them were made again after that.

    The journal knows every start and every end of a call.
    """
    finished: set[tuple[int, str]] = set()
    again, visit = 0, 0
    for _, event in events_of(project, project.run(name), whole=False):
        match event:
            case StepFinished():
                visit += 1
            case EffectStarted(kind=EffectKind.ASK, id=identity):
                again += (visit, identity) in finished
            case EffectFinished(id=identity, usage=usage) if usage is not None:
                finished.add((visit, identity))
    return len(finished), again


def _is_demo(home: Home) -> bool:
    return (home.flows / f"{FLOW}.yaml").is_file()


def _files(home: Home) -> Iterator[tuple[Path, str]]:
    from importlib.resources import files

    data = files("signoff.demo")
    constraints: list[Traversable] = [*(data / "constraints").iterdir()]
    yield home.root / GOAL, (data / "goal.yaml").read_text("utf-8")
    yield home.root / CHECKS, (data / "checks.py").read_text("utf-8")
    yield home.config, (data / "config.yaml").read_text("utf-8")
    for each in sorted(constraints, key=lambda file: file.name):
        yield home.constraints / each.name, each.read_text("utf-8")
    # Written last: this file marks a complete demo project.
    yield home.flows / f"{FLOW}.yaml", (data / "flow.yaml").read_text("utf-8")


def _free_name(project: Project) -> str:
    names = (FLOW if number == 1 else f"{FLOW}-{number}" for number in count(1))
    return next(name for name in names if not project.has_run(name))
