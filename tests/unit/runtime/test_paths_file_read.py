"""Files of a run as text that can be recorded, and `ctx.read`, which records it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.digest import text_digest
from signoff.core.effects import FileRead
from signoff.core.errors import UnreadableFile
from signoff.core.outcome import Status
from signoff.core.requests import Question
from signoff.runtime.environment import Secrets
from signoff.runtime.paths import read_text
from signoff.store.run_files import RunFiles
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, one_step

SECRET = "zq-4711-very-secret"
SECRETS = Secrets.of({"MY_API_KEY": SECRET})


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    """The files of the run `run`, which exists."""
    files = RunFiles(tmp_path)
    files.write("run", "plan.md", "the plan\n")
    return files


@pytest.mark.parametrize("text", ["plain", "é\r\n", "\ufeffmarked", "half \ud83d", ""], ids=repr)
def test_what_a_run_wrote_can_be_read(files: RunFiles, text: str) -> None:
    """A reply of a model is written by one step and read by the next."""
    files.write("run", "plan.md", text)

    file = read_text(files, SECRETS, "run", "plan.md")

    assert file == FileRead("plan.md", text, text_digest(text))


def test_a_missing_file_is_none(files: RunFiles) -> None:
    """The caller decides whether that is an error."""
    assert read_text(files, SECRETS, "run", "missing.md") is None


def test_a_file_that_cannot_be_recorded_is_refused(files: RunFiles, tmp_path: Path) -> None:
    """With the secret hidden, the text would not be the file's."""
    (tmp_path / "run" / "bytes").write_bytes(b"ok \xff")
    files.write("run", "secret", f"key: {SECRET}")

    with pytest.raises(UnreadableFile, match="bytes is not UTF-8 text"):
        read_text(files, SECRETS, "run", "bytes")
    with pytest.raises(UnreadableFile, match="secret contains the value of MY_API_KEY") as refused:
        read_text(files, SECRETS, "run", "secret")
    assert SECRET not in str(refused.value)


def reading(path: str = "plan.md", **options: Any) -> Callable[[StepContext], Any]:
    async def work(ctx: StepContext) -> Work:
        file = await ctx.read(path, **options)
        await ctx.wait(Question("Continue?"))
        again = await ctx.read(path, **options)
        return OK, {"texts": [each.text if each else None for each in (file, again)]}

    return work


async def test_that_a_file_was_missing_is_recorded_too(files: RunFiles) -> None:
    """It may be there when the run is resumed."""
    flow = one_step(reading("notes.md", missing_ok=True))
    bench = EngineFixture(files=files)

    await bench.start(flow)
    files.write("run", "notes.md", "late")
    bench.answer("yes")
    result = await bench.resume(flow)
    await bench.close()

    assert result.state == {"texts": [None, "late"]}


async def test_a_missing_file_fails_the_run_until_it_is_there(files: RunFiles) -> None:
    """The message names the file, and resuming reads again."""
    flow = one_step(reading("notes.md"))
    bench = EngineFixture(files=files)

    failed = await bench.start(flow)
    files.write("run", "notes.md", "here")
    waiting = await bench.resume(flow)
    await bench.close()

    assert failed.status is Status.FAILED
    assert "notes.md does not exist" in failed.reason
    assert waiting.status is Status.WAITING


def plant_pipe(folder: Path) -> None:
    os.mkfifo(folder / "x")


def plant_link(folder: Path) -> None:
    (folder / "x").symlink_to("plan.md")


@pytest.mark.parametrize(
    ("path", "plant", "problem"),
    [
        ("x", plant_pipe, "is a pipe"),
        ("x", plant_link, "is a link"),
        ("../other/plan.md", None, "must not hold '..'"),
        ("/etc/hostname", None, "must not be absolute"),
        ("hitl/answers.json", None, "belongs to the engine"),
    ],
)
async def test_a_hostile_path_is_refused(
    files: RunFiles, tmp_path: Path, path: str, plant: Callable[[Path], None] | None, problem: str
) -> None:
    """Paths come from models, and a pipe would block the run forever."""
    if plant is not None:
        plant(tmp_path / "run")
    bench = EngineFixture(files=files)

    result = await bench.start(one_step(reading(path, missing_ok=True)))
    await bench.close()

    assert result.status is Status.FAILED
    assert problem in result.reason


async def test_without_files_nothing_is_read(bench: EngineFixture) -> None:
    """The message says what is missing."""
    result = await bench.start(one_step(reading()))

    assert result.status is Status.FAILED
    assert "cannot read files" in result.reason
