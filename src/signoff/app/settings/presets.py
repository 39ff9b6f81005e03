"""Presets: small, working sets of files that a notation can write into a project; and the demo.

The files belong to the user once they are written, so they are never overwritten. Schemas
are the exception: they are copies and are updated.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff import plugins
from signoff.app.runs.history import events_of
from signoff.app.settings.home import Home, InitResult, init_home, write_new
from signoff.app.settings.settings import load_settings
from signoff.app.settings.trust import all_lines
from signoff.core.effects import EffectKind
from signoff.core.errors import ConfigError, UnknownName, UsageError, WriteFailed
from signoff.core.events import EffectFinished, EffectStarted, StepFinished
from signoff.core.remedies import PassOption
from signoff.documents.home_folder import FOLDER, VARIABLE, named_home_folder
from signoff.documents.regular_files import translate_write_errors
from signoff.documents.trust import TrustLine, remember
from signoff.notation import Notation, Preset
from signoff.runtime.ports import Notice, Recorded

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from signoff.app.runs.start import StartPlan
    from signoff.app.settings.project import Project
    from signoff.runtime.ports import Observer
    from signoff.runtime.result import RunResult


HOME = "home"
"""The folder of a preset whose files go into the project's home."""
SETTINGS = "config.yaml"
"""The file of that folder whose settings are added to the project's."""
TEMPLATE = ".template"


def presets() -> dict[str, tuple[Preset, Notation]]:
    """Returns every preset by name, with the notation it belongs to."""
    found: dict[str, tuple[Preset, Notation]] = {}
    for notation in plugins.notations():
        for preset in notation.presets:
            found.setdefault(preset.name, (preset, notation))
    return found


def init_project(
    start: Path, environment: Mapping[str, str], preset: str | None = None
) -> InitResult:
    """Creates the missing parts of a project's home, its schemas and a preset's files."""
    available = presets() if preset is not None else {}
    if preset is not None and preset not in available:
        raise UnknownName("preset", preset, available)
    # Only what this call writes is trusted: a cloned project may have brought settings of its own.
    before = _trusted_lines(Home(named_home_folder(start, environment) or start / FOLDER))
    result = _init_project(start, environment, available[preset] if preset is not None else None)
    # What was there before was written by someone else.
    new = [each for each in _trusted_lines(result.home) if each not in before]
    with suppress(OSError):
        # If it cannot be stored, the user is asked.
        remember(result.home.path, new, environment)
    return result


def copy_templates(folder: Path) -> list[Path]:
    """Writes the built-in prompt templates to a folder; raises `UsageError` over existing ones."""
    writers = [each.templates for each in plugins.notations() if each.templates]
    return [file for writer in writers for file in plugins.load(writer)(folder)]


def _init_project(
    start: Path, environment: Mapping[str, str], chosen: tuple[Preset, Notation] | None
) -> InitResult:
    created_home = init_home(start, environment)
    home = created_home.home
    try:
        created = [*created_home.created, *_schemas(home)]
        if chosen is None:
            return InitResult(home, tuple(created))
        preset, notation = chosen
        new, existing = _write(preset, home)
        changed, to_add = _add_settings(preset, home)
    except OSError as error:
        why = error.strerror or error
        raise WriteFailed(f"cannot write {error.filename or home.path}: {why}") from error
    return InitResult(
        home,
        created=(*created, *new),
        existing=tuple(existing),
        changed=changed if home.config not in created else (),
        to_add=to_add,
        run=tuple(_run(preset, notation, home)),
        external=preset.external,
    )


def _trusted_lines(home: Home) -> list[TrustLine]:
    try:
        return all_lines(home, load_settings(home, {}))
    except ConfigError:
        return []


def _run(preset: Preset, notation: Notation, home: Home) -> Iterator[str]:
    is_named = notation.scheme and preset.target.startswith(f"{notation.scheme}:")
    path = home.path / preset.target
    yield preset.target if is_named else path.relative_to(home.root).as_posix()
    for option in notation.options:
        if option.name in preset.options:
            yield from (option.flag, preset.options[option.name])


def _schemas(home: Home) -> Iterator[Path]:
    """Writes the schemas of this version into the project; yields new files."""
    home.schemas.mkdir(exist_ok=True, mode=0o755)
    for notation in plugins.notations():
        folder = _sorted(_data(notation.schemas)) if notation.schemas else []
        for schema in (each for each in folder if each.name.endswith(".schema.json")):
            path, text = home.schemas / schema.name, schema.read_text("utf-8")
            if write_new(path, text):
                yield path
            elif path.read_text("utf-8", errors="replace") != text:
                path.write_text(text, "utf-8")


def _write(preset: Preset, home: Home) -> tuple[list[Path], list[Path]]:
    """Writes a preset's files; returns the new ones and those that exist with other content."""
    created, existing = [], []
    for path, text in _files(_data(preset.files), home.root, home):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        if write_new(path, text):
            created.append(path)
        elif path.read_text("utf-8", errors="replace") != text:
            existing.append(path)
    return created, existing


def _add_settings(preset: Preset, home: Home) -> tuple[tuple[Path, ...], str]:
    """Adds a preset's settings to the project's; returns what changed, and what the user must add.

    They are added as text, so that comments stay. That is possible only if the file has none of
    their keys.
    """
    file = _data(preset.files) / HOME / SETTINGS
    if not file.is_file():
        return (), ""
    text = file.read_text("utf-8")
    new = _sections(text) or {}
    present = _sections(home.config.read_text("utf-8", errors="replace"))
    names = [(key, name) for key, section in new.items() for name in section]
    if present is not None and all(name in (present.get(key) or {}) for key, name in names):
        return (), ""
    # Two sections of one name would make the file invalid, so the user gets the text to add.
    if present is None or present.keys() & new.keys():
        return (), text.strip()
    with home.config.open("a", encoding="utf-8") as config:
        config.write(f"\n{text}")
    return (home.config,), ""


def _sections(text: str) -> dict[str, Any] | None:
    """Returns the top-level keys of settings; None if they cannot be read."""
    from signoff.documents.yaml_text import read_yaml

    document = read_yaml(text, SETTINGS, [])
    content = document.content or {} if document is not None else None
    return content if isinstance(content, dict) else None


def _files(folder: Traversable, folder_path: Path, home: Home) -> Iterator[tuple[Path, str]]:
    for each in _sorted(folder):
        top = folder_path == home.root and each.name == HOME
        path = home.path if top else folder_path / each.name.removesuffix(TEMPLATE)
        if each.is_dir():
            yield from _files(each, path, home)
        elif path != home.config:
            # Paths in the text use the actual name of the home.
            text = each.read_text("utf-8").replace(f"{FOLDER}/", f"{home.path.name}/")
            yield path, text


def _data(folder_path: str) -> Traversable:

    package, _, folder = folder_path.partition(":")
    return files(package) / folder


def _sorted(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda each: each.name)


# The demo is a small project of its own, in which a model writes and checks review. Running it
# again starts another run with the files as they are.

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
    from signoff.app.runs.start import plan

    home = prepare_project(folder)
    # The demo must not be created in a home that the environment names.
    own = {name: value for name, value in environment.items() if name != VARIABLE}
    planned = plan(home.root, own, FLOW, {}, command_line=command_line, options={"goal": GOAL})
    project = planned.open(home.root, own)
    names = (FLOW if number == 1 else f"{FLOW}-{number}" for number in count(1))
    return DemoRun(project, planned, next(name for name in names if not project.has_run(name)))


async def drive_run(demo: DemoRun, agent: str | None, observers: Sequence[Observer]) -> RunResult:
    """Drives the run to its end, optionally with another agent as the writer."""
    from signoff.app.runs.start import start

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
    is_demo = (home.flows / f"{FLOW}.yaml").is_file()
    if folder.exists() and not is_demo and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder} exists and is not a demo; choose another folder",
            remedy=PassOption("folder", "DIR"),
        )
    with translate_write_errors(folder):
        home.path.mkdir(parents=True, exist_ok=True, mode=0o755)
        # Written first: files are never overwritten, and `init_project` writes default settings.
        for path, text in _demo_files(home):
            path.parent.mkdir(exist_ok=True, mode=0o755)
            write_new(path, text)
    created = init_project(folder, {}).home
    if is_new:
        remember(created.path, all_lines(created, load_settings(created, {})), os.environ)
    return created


class DieOnce:
    """Kills its own process, as a power cut would, once the first fix is recorded."""

    def notice(self, notice: Notice) -> None:
        """Kills the process at the end of the first fix."""
        for event in notice.events if isinstance(notice, Recorded) else ():
            step = (
                event.delta.get("set", {}).get("step") if isinstance(event, StepFinished) else None
            )
            if isinstance(step, Mapping) and step.get("kind") == "refine":
                os.kill(os.getpid(), signal.SIGKILL)


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


def _demo_files(home: Home) -> Iterator[tuple[Path, str]]:

    data = files("signoff.surfaces.cli.demo")
    constraints: list[Traversable] = [*(data / "constraints").iterdir()]
    yield home.root / GOAL, (data / "goal.yaml").read_text("utf-8")
    yield home.root / CHECKS, (data / "checks.py").read_text("utf-8")
    yield home.config, (data / "config.yaml").read_text("utf-8")
    for each in sorted(constraints, key=lambda file: file.name):
        yield home.constraints / each.name, each.read_text("utf-8")
    # Written last: this file marks a complete demo project.
    yield home.flows / f"{FLOW}.yaml", (data / "flow.yaml").read_text("utf-8")
