import os
from pathlib import Path, PureWindowsPath

from hypothesis import given
from hypothesis import strategies as st

from signoff.profiles.model import WriteOp
from signoff.profiles.responses import check_artifact_path, check_writes
from signoff.runtime.paths import safe_path

ROOT = Path("/somewhere/run/iteration-1/code")

PIECES = st.sampled_from(
    [
        "..",
        ".",
        "",
        "/",
        "\\",
        "\\\\",
        "a",
        "A",
        "b.txt",
        "C:",
        "~",
        "\0",
        " ",
        "nul",
        "\uff0e\uff0e",
        ".git",
    ]
)
PATHS = st.one_of(
    st.text(max_size=40),
    st.lists(PIECES, max_size=6).map("/".join),
    st.lists(PIECES, max_size=6).map("\\".join),
    st.lists(PIECES, max_size=6).map("".join),
)


@given(PATHS)
def test_nothing_that_is_accepted_leaves_the_folder(path: str) -> None:
    """One accepted path that does is a hole in every session."""
    try:
        normalized = check_artifact_path(path)
    except ValueError:
        return

    place = Path(os.path.normpath(ROOT / normalized))
    assert place == ROOT / normalized
    assert place.is_relative_to(ROOT)
    assert place != ROOT
    assert PureWindowsPath(normalized).parts == place.relative_to(ROOT).parts
    assert not any(part.startswith(".") for part in place.relative_to(ROOT).parts)


@given(PATHS)
def test_what_is_accepted_is_accepted_again_and_by_the_engine(path: str) -> None:
    """A file that passes the check must not fail when it is written."""
    try:
        normalized = check_artifact_path(path)
    except ValueError:
        return

    assert check_artifact_path(normalized) == normalized
    safe_path(Path("/somewhere/run"), f"iteration-1000/code/{normalized}")


@given(st.lists(PATHS, min_size=1, max_size=6))
def test_the_files_of_an_accepted_plan_are_all_different(paths: list[str]) -> None:
    """No file is lost, and none is a folder of another."""
    try:
        texts = check_writes([WriteOp(path=path, content="x") for path in paths])
    except ValueError:
        return

    assert len(texts) == len(paths)
    places = [ROOT / path for path in texts]
    assert not any(a in b.parents for a in places for b in places)
