import os
from pathlib import Path, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.core.errors import UnsafePath
from signoff.runtime.paths import safe_path

PIECES = st.sampled_from(
    ["..", ".", "", "/", "\\", "a", "b.txt", "C:", "~", "\0", " ", "nul", "．．", "\u200c", ".git"]  # noqa: RUF001
)
PATHS = st.one_of(
    st.text(max_size=40),
    st.lists(PIECES, max_size=6).map("/".join),
    st.lists(PIECES, max_size=6).map("".join),
)


@given(relative=PATHS)
def test_an_accepted_path_stays_inside_the_root_on_every_system(relative: str) -> None:
    """One accepted path that leaves the root is a hole in every run."""
    root = Path("/somewhere/run")
    try:
        place = safe_path(root, relative)
    except UnsafePath:
        return

    assert Path(os.path.normpath(place)) == place
    assert place.is_relative_to(root)
    assert place != root
    windows = PureWindowsPath(relative)
    assert not windows.drive
    assert not windows.root
    assert windows.parts == place.relative_to(root).parts


@given(relative=PATHS)
def test_the_parts_of_an_accepted_path_are_accepted(relative: str) -> None:
    """Rules that depend on the position of a name could be bypassed by joining paths."""
    root = Path("/somewhere/run")
    try:
        safe_path(root, relative)
    except UnsafePath:
        return

    for name in relative.split("/"):
        safe_path(root, name)


@given(relative=PATHS, up=st.integers(min_value=1, max_value=4))
def test_a_parent_folder_is_refused_anywhere_in_a_path(relative: str, up: int) -> None:
    """Many path checks fail because they normalize the path first."""
    with pytest.raises(UnsafePath):
        safe_path(Path("/somewhere/run"), "/".join([relative, *[".."] * up]))
