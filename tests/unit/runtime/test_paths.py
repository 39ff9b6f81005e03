import sys
from pathlib import Path

import pytest

from signoff.core.context import StepContext
from signoff.core.errors import UnsafePath
from signoff.core.outcome import Outcome
from signoff.core.requests import Question
from signoff.runtime.paths import path_from, safe_path
from tests.tables import table
from tests.unit.runtime.engine_fixture import EngineFixture, Work, one_step

HARMLESS = [
    "artifact.md",
    "final/artifact.md",
    "iterations/12/critiques/accuracy-claude.json",
    "code/src/main/App.java",
    "Übersicht.md",
    "文档/计划.md",
    "a b (draft).txt",
    "v1.2..3.txt",
    "state.json",
    "commander.txt",
    "x" * 240,
]

HOSTILE = {
    "": "empty",
    "/etc/passwd": "absolute",
    "//server/share": "absolute",
    "..": "'..'",
    "../outside.txt": "'..'",
    "a/../../outside.txt": "'..'",
    "a/..": "'..'",
    ".": "'.'",
    "./a.txt": "'.'",
    "a/./b.txt": "'.'",
    "a//b.txt": "empty name",
    "a/": "empty name",
    "\\\\server\\share\\x": "backslash",
    "..\\outside.txt": "backslash",
    "a\\b.txt": "backslash",
    "C:/Windows/x": "colon",
    "C:x": "colon",
    "notes.txt:hidden": "colon",
    "~/x": "'~'",
    "~root": "'~'",
    ".env": "hidden",
    "a/.git/config": "hidden",
    "...": "hidden",
    ".../x": "hidden",
    "．．/x": "hidden",  # noqa: RUF001  # wide full stops are the point
    "․env": "hidden",  # noqa: RUF001  # one dot leader
    "a\0.txt": "invisible",
    "a\n.txt": "invisible",
    "a\x7f.txt": "invisible",
    "\u200c.git": "invisible",
    "a\u202etxt.exe": "invisible",
    "a\u2028b": "invisible",
    "a\ud800": "invisible",
    "a.txt ": "blank",
    " a.txt": "blank",
    "a/b /c": "blank",
    "a.txt.": "dot",
    "a./b": "dot",
    "NUL": "device",
    "con": "device",
    "aux.txt": "device",
    "a/Com1.log/b": "device",
    "lpt¹": "device",
    "nul .txt": "device",
    "x" * 241: "longer",
    "é" * 121: "longer",
    "/".join(["abcdefghi"] * 101): "longer",
}


@pytest.mark.parametrize("relative", HARMLESS)
def test_a_plain_path_is_taken_as_it_is(tmp_path: Path, relative: str) -> None:
    """A rule that refuses ordinary names would stop honest workflows."""
    path = safe_path(tmp_path, relative)

    assert path == tmp_path.joinpath(*relative.split("/"))


@table(("relative", "why"), HOSTILE.items())
def test_a_hostile_path_is_refused_and_the_reason_named(
    tmp_path: Path, relative: str, why: str
) -> None:
    """A model could otherwise write outside the run, or into hidden files."""
    with pytest.raises(UnsafePath, match=why):
        safe_path(tmp_path, relative)


def test_a_path_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """A number from a model's JSON would otherwise end in a traceback."""
    with pytest.raises(UnsafePath, match="must be text, not int"):
        safe_path(tmp_path, 7)  # type: ignore[arg-type]  # what JSON may hold


@pytest.mark.parametrize("name", ["hitl", "HITL", "Hitl", "ｈitl"])  # noqa: RUF001  # a wide h
def test_a_reserved_first_name_is_refused_however_it_is_spelt(tmp_path: Path, name: str) -> None:
    """On a disk that ignores case, `HITL/answers.json` would be a forged answer."""
    with pytest.raises(UnsafePath, match="belongs to the engine"):
        safe_path(tmp_path, f"{name}/answers.json", reserved={"hitl"})


def test_a_reserved_name_is_free_further_down(tmp_path: Path) -> None:
    """A code project may well have a state.json of its own."""
    path = safe_path(tmp_path, "code/state.json", reserved={"state.json"})

    assert path == tmp_path / "code" / "state.json"


@pytest.mark.parametrize("relative", ["link", "link/x.txt", "sub/inner/x.txt", "dangling/x"])
def test_no_link_in_a_path_is_followed(tmp_path: Path, relative: str) -> None:
    """A link planted in the run directory would lead writes anywhere on the machine."""
    root, outside = tmp_path / "run", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    (root / "link").symlink_to(outside)
    (root / "sub" / "inner").symlink_to("../../outside")
    (root / "dangling").symlink_to("nowhere")

    with pytest.raises(UnsafePath, match="is a link"):
        safe_path(root, relative)


def test_the_root_itself_may_be_reached_through_a_link(tmp_path: Path) -> None:
    """A project on another disk, linked to, is the user's choice and no attack."""
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")

    path = safe_path(tmp_path / "alias", "a.txt")

    assert path == tmp_path / "alias" / "a.txt"


def test_a_hidden_folder_may_be_allowed_by_name(tmp_path: Path) -> None:
    """The engine's own caches are hidden; the names in them are checked all the same."""
    assert safe_path(tmp_path, ".cache/a.md", hidden={".cache"}) == tmp_path / ".cache" / "a.md"
    for path in (".cache/.a", ".other/a", "a/.cache", ".cache/../a"):
        with pytest.raises(UnsafePath):
            safe_path(tmp_path, path, hidden={".cache"})


WHERE = [sys.executable, "-c", "import os; print(os.getcwd(), end='')"]


async def looks_around(ctx: StepContext) -> Work:
    await ctx.wait(Question("Continue?"))
    here = await ctx.command(WHERE, key="here")
    below = await ctx.command(WHERE, cwd="sub", key="below")
    reply = await ctx.ask("claude", "Write.", workspace="sub")
    return Outcome.OK, {"seen": [here.stdout, below.stdout], "reply": reply.text}


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder runs are started in."""
    (tmp_path / "started" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "started")
    return tmp_path / "started"


async def test_programs_run_where_their_run_was_started(
    started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`resume --due` from cron would else run half of the commands somewhere else."""
    bench = EngineFixture()
    bench.agent.on("Write", lambda request: str(request.workspace))
    flow = one_step(looks_around)
    await bench.start(flow)
    bench.answer("yes")
    monkeypatch.chdir(started.parent / "elsewhere")

    result = await bench.resume(flow)

    assert result.state["seen"] == [str(started), str(started / "sub")]
    assert result.state["reply"] == str(started / "sub")
    await bench.close()


async def test_a_project_that_was_moved_runs_its_programs_where_it_is_resumed(
    started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users must not need to restore the old folder just to finish a run."""
    bench = EngineFixture()
    bench.agent.on("Write", "text")
    flow = one_step(looks_around)
    await bench.start(flow)
    bench.answer("yes")
    moved = started.rename(started.with_name("moved"))  # noqa: ASYNC240  # nothing else runs
    monkeypatch.chdir(moved)

    result = await bench.resume(flow)

    assert result.state["seen"] == [str(moved), str(moved / "sub")]
    await bench.close()


def test_a_whole_path_stays_as_it_is(tmp_path: Path) -> None:
    """It means the same from everywhere."""
    assert path_from(str(tmp_path), "/etc") == "/etc"
    assert path_from("", None) is None
