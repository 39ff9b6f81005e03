import pytest

from signoff.profiles.model import WriteOp
from signoff.profiles.responses import LONGEST, check_artifact_path, check_writes
from tests.tables import table


@pytest.mark.parametrize(
    ("path", "normalized"),
    [
        ("User.java", "User.java"),
        ("com/acme/User.java", "com/acme/User.java"),
        ("com\\acme\\User.java", "com/acme/User.java"),
        ("a b/c-d_e.f.py", "a b/c-d_e.f.py"),
        ("__init__.py", "__init__.py"),
        ("größe.py", "größe.py"),
        ("Makefile", "Makefile"),
    ],
)
def test_a_relative_path_of_plain_names_is_accepted(path: str, normalized: str) -> None:
    """Windows' separators become those of everyone else."""
    assert check_artifact_path(path) == normalized


@table(
    "path",
    [
        "", " ", ".", "..", "/", "\\", "/etc/passwd", "\\windows\\x", "//host/share/x",
        "\\\\host\\x", "C:/x", "c:\\x", "C:x", "a:b", "../x", "..\\x", "a/../x", "a\\..\\x", "a/..",
        "./x", "a/./x", "a//b", "a/", "a\\", ".git/config", "a/.env", ".x", "~/x", "a\0b",
        "a\nb", "a\u200bb",
        "nul", "a/con.txt", "x.", "x ", " x", "\uff0e\uff0e/x", "a/" + "x" * 300,
        "a/" * LONGEST + "x",
    ],
)  # fmt: skip
def test_a_path_that_leaves_the_folder_or_hides_is_refused(path: str) -> None:
    """The model may have been talked into it."""
    with pytest.raises(ValueError, match="path"):
        check_artifact_path(path)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a.py", "a.py"),
        ("a/b.py", "a\\b.py"),
        ("User.java", "user.java"),
        ("caf\u00e9.py", "cafe\u0301.py"),
        ("a", "a/b"),
        ("a/b", "A"),
        ("x/y/z", "x/Y"),
    ],
)
def test_two_files_of_one_name_are_refused(first: str, second: str) -> None:
    """One would overwrite the other, and no one would know which."""
    writes = [WriteOp(path=path, content="x") for path in ("other.py", first, second)]

    with pytest.raises(ValueError, match="cannot both be written"):
        check_writes(writes)


def test_files_of_different_names_may_be_similar() -> None:
    """Names that merely begin alike are different files."""
    paths = ["a", "ab", "b/a", "b/ab/c", "c/a/d", "c/b"]

    assert list(check_writes([WriteOp(path=path, content="") for path in paths])) == paths


def test_every_problem_of_a_plan_is_reported() -> None:
    """The provider fixes all of them in one attempt."""
    writes = [WriteOp(path=path, content="") for path in ("../x", "a.py", "/y", "a.py")]

    with pytest.raises(ValueError, match="cannot") as error:
        check_writes(writes)

    assert all(name in str(error.value) for name in ("'../x'", "'/y'", "'a.py'"))
