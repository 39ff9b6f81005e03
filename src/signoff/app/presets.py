"""Presets: small, working sets of a flow, its constraints and a goal, written into a project.

The files themselves stand in `flows/presets/`, one folder each. They belong to whoever
asked for them as soon as they are written, so nothing is ever overwritten. Schemas are
the exception: they are copies, and are brought up to date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.app.home import FOLDER, Home, init_home, write_new
from signoff.errors import UnknownName, WriteFailed

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

GOAL = "goal.yaml"
"""Stands in the project's root: it changes with every piece of work, and is no flow."""


@dataclass(frozen=True)
class Preset:
    """A set that can be asked for by name."""

    name: str
    about: str


PRESETS = (
    Preset("docs", "a page checked against its sources: accuracy, structure, clarity, tone"),
    Preset("code", "one source file with tests: security, correctness, tests, simplicity"),
    Preset("stories", "a short story in two passes: plot, character, continuity, language"),
)


@dataclass(frozen=True)
class InitResult:
    """What beginning a project did."""

    home: Home
    created: tuple[Path, ...]
    kept: tuple[Path, ...] = ()
    """Files of the preset in whose place there was something else already."""
    next: tuple[str, ...] = ()
    """What to type in the project's root to check the preset, and to run it."""


def begin(start: Path, environment: Mapping[str, str], preset: str | None = None) -> InitResult:
    """Makes what is missing of a project's home, its schemas and a preset's files."""
    known = [each.name for each in PRESETS]
    if preset is not None and preset not in known:
        raise UnknownName("preset", preset, known)
    made = init_home(start, environment)
    home = made.home
    try:
        created = [*made.created, *_schemas(home)]
        if preset is None:
            return InitResult(home, tuple(created))
        new, kept = _preset(preset, home)
    except OSError as error:
        why = error.strerror or error
        raise WriteFailed(f"cannot write {error.filename or home.path}: {why}") from error
    flow = (home.flows / f"{preset}.yaml").relative_to(home.root).as_posix()
    commands = (f"signoff validate {flow} --goal {GOAL}", f"signoff run {flow} --goal {GOAL}")
    return InitResult(home, (*created, *new), tuple(kept), commands)


def _schemas(home: Home) -> Iterator[Path]:
    """Puts the schemas of this version where a project's files say they are; yields new ones."""
    home.schemas.mkdir(exist_ok=True, mode=0o755)
    for schema in (*_sorted(_data("schemas")), *_sorted(_data("schemas", "signoff.contracts"))):
        if not schema.name.endswith(".schema.json"):
            continue
        path, text = home.schemas / schema.name, schema.read_text("utf-8")
        if write_new(path, text):
            yield path
        elif path.read_text("utf-8", errors="replace") != text:
            path.write_text(text, "utf-8")


def _preset(name: str, home: Home) -> tuple[list[Path], list[Path]]:
    """Writes a preset's files; returns the new ones, and those that were left as they are."""
    created, kept = [], []
    for path, text in _files(name, home):
        if write_new(path, text):
            created.append(path)
        elif path.read_text("utf-8", errors="replace") != text:
            kept.append(path)
    return created, kept


def _files(name: str, home: Home) -> Iterator[tuple[Path, str]]:
    folder = _data("presets") / name
    yield home.flows / f"{name}.yaml", _text(folder / "flow.yaml", home)
    for constraint in _sorted(folder / "constraints"):
        yield home.constraints / constraint.name, _text(constraint, home)
    yield home.root / GOAL, _text(folder / GOAL, home)


def _data(kind: str, package: str = "signoff.flows") -> Traversable:
    from importlib.resources import files

    return files(package) / kind


def _sorted(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda each: each.name)


def _text(file: Traversable, home: Home) -> str:
    """Returns a file's text, with the home called as it is called here."""
    return file.read_text("utf-8").replace(f"{FOLDER}/", f"{home.path.name}/")
