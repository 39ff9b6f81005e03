"""The demonstration: a small project of its own, in which a model writes and checks review.

Its files stand in `signoff/demo/`. Once written they belong to whoever asked for them:
running the demo again starts another run with the files as they are by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff.app.home import FOLDER, VARIABLE, Home, write_new
from signoff.app.presets import begin
from signoff.errors import UnknownName, UsageError, WriteFailed
from signoff.remedies import PassOption

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from signoff.app.project import Project
    from signoff.app.show import RunDetails
    from signoff.app.start import StartPlan
    from signoff.runtime.ports import Observer
    from signoff.runtime.result import RunResult

PLACE = "signoff-demo"
"""The folder that is made when none is named."""
FLOW = "demo"
GOAL = "goal.yaml"
CHECKS = "demo_checks.py"
WRITER = "writer"
"""The role another agent can be asked to play."""


@dataclass(frozen=True)
class DemoRun:
    """A demo that is ready to run."""

    project: Project
    plan: StartPlan
    name: str
    """What the run will be called."""


@dataclass(frozen=True)
class Version:
    """The text as one round read it, and what was wrong with it."""

    text: str
    findings: tuple[Mapping[str, Any], ...]
    by_edits: bool = False
    """Whether exact edits made it out of the version before, and nobody was asked."""


def begin_run(
    folder: Path, environment: Mapping[str, str], command_line: Mapping[str, Any] | None = None
) -> DemoRun:
    """Makes the demo's project where there is none, and finds a new name for a run in it."""
    from signoff.app.start import plan

    home = prepare(folder)
    # A home of somebody else must not take the demo in.
    own = {name: value for name, value in environment.items() if name != VARIABLE}
    planned = plan(home.root, own, FLOW, {}, command_line=command_line, options={"goal": GOAL})
    project = planned.open(home.root, own)
    return DemoRun(project, planned, _free_name(project))


async def drive_run(begun: DemoRun, agent: str | None, observers: Sequence[Observer]) -> RunResult:
    """Drives the run to its end, with another agent as its writer if one is named."""
    from signoff.app.start import start

    return await start(
        begun.project,
        begun.plan.target,
        {},
        name=begun.name,
        limits=begun.plan.given,
        switch={WRITER: agent} if agent else None,
        observers=observers,
    )


def prepare(folder: Path) -> Home:
    """Makes the demo's project, or takes it as it stands; refuses a folder of other things."""
    home = Home(folder / FOLDER)
    if folder.exists() and not _is_demo(home) and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder} exists and is not a demo; choose another folder",
            remedy=PassOption("folder", "DIR"),
        )
    try:
        home.path.mkdir(parents=True, exist_ok=True, mode=0o755)
        # Before everything else: the settings that `begin` writes would be in the way.
        for path, text in _files(home):
            path.parent.mkdir(exist_ok=True, mode=0o755)
            write_new(path, text)
    except OSError as error:
        raise WriteFailed(f"cannot create {folder}: {error.strerror or error}") from error
    return begin(folder, {}).home


def what_is_missing(environment: Mapping[str, str]) -> tuple[bool, bool]:
    """Tells whether what runs the small model, and whether the model itself, is not here."""
    from signoff.agents.weights import State
    from signoff.app.models import DEFAULT, list_models

    states = {model.name: model.state for model in list_models(environment)}
    return find_spec("xllamacpp") is None, states[DEFAULT] is not State.READY


def versions(report: RunDetails) -> list[Version]:
    """Returns every text that was reviewed, in order, with what was found in it."""
    facts = report.notation_report.facts if report.notation_report else {}
    found = facts.get("findings", ())
    read: list[Version] = []
    for counted in facts.get("rounds", ()):
        number = counted["iteration"]
        path = report.folder / "iterations" / _file_of(number)
        open_then = [each for each in found if _is_open(each, number)]
        if path.is_file():
            asked = any(path.parent.glob("prompt_refine*"))
            by_edits = number > 1 and not asked
            read.append(Version(path.read_text("utf-8").strip(), tuple(open_then), by_edits))
    return read


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
    # Last: it is what tells a demo from a folder in which making one failed half-way.
    yield home.flows / f"{FLOW}.yaml", (data / "flow.yaml").read_text("utf-8")


def _free_name(project: Project) -> str:
    names = (FLOW if number == 1 else f"{FLOW}-{number}" for number in count(1))
    return next(name for name in names if not _is_taken(project, name))


def _is_taken(project: Project, name: str) -> bool:
    try:
        project.store.row(name)
    except UnknownName:
        return False
    return True


def _file_of(number: int) -> str:
    return "1/artifact.md" if number == 1 else f"{number - 1}/artifact_refined.md"


def _is_open(finding: Mapping[str, Any], iteration: int) -> bool:
    said = [word for when, word in finding["history"] if when <= iteration]
    return bool(said) and said[-1] not in ("fixed", "dismissed", "ignored")
