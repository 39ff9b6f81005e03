import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from signoff.review.flow.steps.material import (
    MANY_CHARACTERS,
    MOST_BYTES,
    MOST_FILES,
    Script,
    SourceText,
    read_source,
)
from signoff.review.pure.constraint import SourceBlock


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "notes.md").write_text("Notes.\n")
    (root / "docs" / "a.md").write_text("A.\n")
    (root / "docs" / "deep" / "b.md").write_text("B.\n")
    (tmp_path / "secret.md").write_text("SECRET\n")
    return root


def read(
    root: Path,
    *allowed: Path,
    files: Sequence[str] = (),
    globs: Sequence[str] = (),
    scripts: Sequence[str] = (),
    inline: str = "",
) -> SourceText:
    block = SourceBlock(tuple(files), tuple(globs), tuple(scripts), inline)
    variables = {"project_root": str(root), "run_dir": str(root.parent / "run")}
    return read_source(block, root=root, allowed=allowed, variables=variables)


def test_material_is_headed_by_where_it_comes_from(project: Path) -> None:
    """A model that cites a source has to know its name, and not the machine's folders."""
    found = read(
        project, files=["notes.md"], globs=["docs/**/*.md"], inline="{{project_root}} as is"
    )

    assert found == SourceText(
        "### FILE: notes.md\n\nNotes.\n\n"
        "### FILE: docs/a.md\n\nA.\n\n"
        "### FILE: docs/deep/b.md\n\nB.\n\n"
        "### INLINE SOURCE\n\n{{project_root}} as is\n"
    )


def test_variables_stand_for_folders(project: Path) -> None:
    """The same flow file has to work in every checkout."""
    run = project.parent / "run"
    run.mkdir()
    (run / "draft.md").write_text("Draft.")

    found = read(
        project,
        run,
        files=["{{project_root}}/notes.md", "{{ run_dir }}/draft.md"],
        globs=["{{project_root}}/docs/*.md"],
    )

    assert not found.errors
    assert "Notes." in found.text
    assert "Draft." in found.text
    assert "A." in found.text


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../secret.md", "'..' is not allowed"),
        ("docs/../../secret.md", "'..' is not allowed"),
        ("{{project_root}}/../secret.md", "'..' is not allowed"),
        ("/etc/hostname", "is outside the project"),
        ("{{run_dir}}/x.md", "is outside the project"),
        ("link.md", "is outside the project"),
        ("linked/secret.md", "is outside the project"),
        ("missing.md", "no such file"),
        ("docs", "no such file"),
        ("pipe", "no such file"),
        ("loop", "loop: "),
        ("x" * 5000, "cannot be read"),
        ("a\0b", "is not a valid path"),
        (" ", "is not a valid path"),
        ("{{nonsense}}/x.md", "unknown variable 'nonsense'; valid: project_root, run_dir"),
        ("binary", "is not text"),
        ("latin", "is not UTF-8 text"),
    ],
)
def test_a_source_that_cannot_be_used_is_an_error_and_the_rest_is_read(
    project: Path, path: str, why: str
) -> None:
    """A bad path must neither leak a file from outside nor keep the others from being read."""
    (project / "link.md").symlink_to(project.parent / "secret.md")
    (project / "linked").symlink_to(project.parent)
    (project / "loop").symlink_to(project / "loop")
    (project / "binary").write_bytes(b"a\0b")
    (project / "latin").write_bytes(b"caf\xe9")
    os.mkfifo(project / "pipe")

    found = read(project, files=[path, "notes.md"])

    assert "Notes." in found.text
    assert "SECRET" not in found.text
    (error,) = found.errors
    assert why in error


@pytest.mark.parametrize("glob", ["../*.md", "/etc/host*", "linked/*.md", "l*.md", "**"])
def test_globs_do_not_lead_out_of_the_project(project: Path, glob: str) -> None:
    """A link inside the project must not give access to folders outside."""
    (project / "link.md").symlink_to(project.parent / "secret.md")
    (project / "linked").symlink_to(project.parent)

    found = read(project, globs=[glob])

    assert "SECRET" not in found.text


def test_a_match_that_cannot_be_looked_at_is_an_error_and_the_rest_is_read(project: Path) -> None:
    """One such file ended the run; the system refuses this link for its length."""
    (project / "docs" / "far.md").symlink_to("x" * 300)

    found = read(project, globs=["docs/*.md"])

    assert "### FILE: docs/a.md" in found.text
    (error,) = found.errors
    assert error.startswith("docs/far.md: cannot be read")


def test_hidden_files_are_read_only_when_the_glob_names_them(project: Path) -> None:
    """`**/*` must not send keys and the project's own database to a provider."""
    (project / ".env").write_text("KEY")
    (project / ".signoff").mkdir()
    (project / ".signoff" / "rules.md").write_text("Rules.")

    assert "KEY" not in read(project, globs=["*", "**/*"]).text
    assert "Rules." not in read(project, globs=["**/*.md"]).text
    assert "Rules." in read(project, globs=[".signoff/*.md"]).text


def test_files_beyond_the_limit_are_left_out_with_a_warning(project: Path) -> None:
    """A glob over a big tree must not fill the prompt, and always with the same files."""
    for number in range(MOST_FILES + 5):
        (project / f"n{number:03}.txt").write_text(str(number))

    found = read(project, globs=["*.txt", "docs/*.md"])

    assert found.text.count("### FILE:") == MOST_FILES
    assert "### FILE: n000.txt" in found.text
    assert "the globs match 106 files; only the first 100 are read" in found.warnings


def test_a_file_that_is_too_large_is_left_out(project: Path) -> None:
    """A truncated file would be worse than none."""
    (project / "large").write_bytes(b"x" * (MOST_BYTES + 1))
    (project / "fits").write_bytes(b"x" * MOST_BYTES)

    found = read(project, files=["large", "fits"])

    assert found.errors == ("large: is larger than 1,000,000 bytes",)
    assert "### FILE: fits" in found.text
    assert found.warnings == (f"the source material is long: {len(found.text):,} characters",)
    assert len(found.text) > MANY_CHARACTERS


def test_programs_are_listed_and_not_run(project: Path) -> None:
    """The user decides whether they may run, and each run is recorded."""
    script = project / "facts.sh"
    script.write_text("#!/bin/sh\ntouch ran\n")
    script.chmod(0o755)

    found = read(project, scripts=["facts.sh", "./facts.sh 'two words' {{run_dir}}", "git log -1"])

    full = str(script.resolve())
    assert found.scripts == (
        Script("facts.sh", (full,)),
        Script(
            "./facts.sh 'two words' {{run_dir}}", (full, "two words", str(project.parent / "run"))
        ),
        Script("git log -1", ("git", "log", "-1")),
    )
    assert not (project / "ran").exists()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "is not a valid command"),
        ("say 'open", "is not a valid command"),
        ("/bin/sh -c true", "is outside the project"),
        ("../tool", "'..' is not allowed"),
        ("no-such-program-here", "no such program"),
        ("notes.md", "is not executable (run chmod +x)"),
        ("git {{nonsense}}", "unknown variable 'nonsense'"),
    ],
)
def test_a_program_that_cannot_run_is_reported_in_advance(
    project: Path, command: str, why: str
) -> None:
    """A failure in the middle of a run costs more."""
    found = read(project, scripts=[command])

    assert found.scripts == ()
    (error,) = found.errors
    assert why in error
