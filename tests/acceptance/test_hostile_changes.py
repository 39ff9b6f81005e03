"""What a change can do to look smaller than it is: names, moves, and files that are no text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.acceptance.review_project import ReviewProject, finds, issue

BAD = "It always works.\n"
OK, WRONG, OPEN, INCOMPLETE = 0, 2, 17, 18


@pytest.fixture
def project(review_project: ReviewProject) -> ReviewProject:
    """A branch whose critics object to one sentence."""
    review_project.write("docs/a.md", "The server uses port 80.\n")
    review_project.write("docs/b.md", "It works.\n")
    quoted = {**issue(""), "path": ""}
    review_project.script(finds(quoted, contains="It always works."))
    review_project.commit("calm")
    review_project.git("checkout", "-q", "-b", "change")
    return review_project


def tag_like(name: str) -> Callable[[ReviewProject], str]:
    """Returns a change with a tag that hides it, and the base to compare with."""

    def plant(project: ReviewProject) -> str:
        project.write("docs/a.md", BAD)
        base = project.git("rev-parse", "--short", "main").strip() if name == "digest" else name
        if name == "origin/main":
            project.git("update-ref", "refs/remotes/origin/main", "main")
        project.commit("change")
        project.git("tag", base)
        return base

    return plant


@pytest.mark.parametrize("name", ["main", "origin/main", "digest"])
def test_a_base_with_several_meanings_is_refused(project: ReviewProject, name: str) -> None:
    """Git prefers tags, and anyone may push a tag `main` to the tip of a change."""
    base = tag_like(name)(project)

    refused = project.review("--diff", base)
    whole = project.review("--diff", f"{base}~1", "--name", "two")
    exact = project.review("--diff", project.git("rev-parse", "refs/heads/main").strip())
    branch = project.review("--diff", "refs/heads/main", "--name", "three")

    assert (refused.code, whole.code, exact.code, branch.code) == (WRONG, WRONG, OPEN, OPEN)
    assert "is the name of several commits" in refused.err


def test_a_tag_at_the_same_commit_is_no_other_meaning(project: ReviewProject) -> None:
    project.git("tag", "main", "main")

    assert project.review("--diff", "main").code == OK


@pytest.mark.parametrize("old", ["vendor/x.md", "notes.md", ".hidden/x.md", "left/x.md"])
def test_what_moves_to_where_it_is_read_is_new(project: ReviewProject, old: str) -> None:
    """One change adds it where nobody reads, the next one only moves it."""
    project.write(".signoff/constraints/tone.yaml", "summary: Calm.\npaths: ['docs/', 'left/']\n")
    project.write(".signoffignore", "left/\n")
    project.write(old, BAD + "More.\n" * 50)
    project.write("docs/same.md", BAD + "Other.\n" * 50)
    project.commit("before")
    base = project.git("rev-parse", "HEAD").strip()
    project.git("mv", old, "docs/new.md")
    project.git("mv", "docs/same.md", "docs/moved.md")
    project.commit("moves")
    project.script(finds(issue("docs/new.md"), issue("docs/moved.md")))

    result = project.review("--diff", base)

    assert result.code == OPEN
    assert "docs/new.md:1: HIGH" in result.out
    assert "1 finding in 2 files" in result.out


def test_a_changed_file_that_is_not_checked_out_is_not_read(project: ReviewProject) -> None:
    project.write("docs/a.md", BAD)
    project.commit("change")
    project.git("sparse-checkout", "set", "--no-cone", "/.signoff/", "/docs/b.md")

    result = project.review("--diff", "main")

    assert result.code == INCOMPLETE
    assert "not read (not checked out): docs/a.md" in result.out


def nul_byte(project: ReviewProject) -> None:
    (project.folder / "docs/a.md").write_bytes(BAD.encode() + b"\0")


def link(project: ReviewProject) -> None:
    (project.folder / "docs/a.md").unlink()
    (project.folder / "docs/a.md").symlink_to("/etc/hostname")


@pytest.mark.parametrize("replace", [nul_byte, link])
def test_a_text_that_is_none_any_more_is_not_read(
    project: ReviewProject, replace: Callable[[ReviewProject], None]
) -> None:
    """Of a file that was never a text, the same is left out by rule."""
    replace(project)
    project.commit("change")

    result = project.review("--diff", "main")

    assert result.code == INCOMPLETE
    assert "not read (no text any more): docs/a.md" in result.out


@pytest.mark.parametrize("folder", [":(exclude)docs", "[id]", "x*"])
def test_a_folder_is_the_one_that_is_named_whatever_its_name_means_to_git(
    project: ReviewProject, folder: str
) -> None:
    project.write(f"{folder}/bad.md", BAD)
    project.commit("change")

    whole = project.review(folder)
    change = project.review("--diff", "main", folder, "--name", "two")

    assert (whole.code, change.code) == (OPEN, OPEN)
    assert "1 finding in 1 file," in whole.out
    assert "1 finding in 1 file," in change.out


def test_a_submodule_and_a_constraint_about_nothing_are_named(project: ReviewProject) -> None:
    project.git("init", "-q", "other")
    (project.folder / "other/x.md").write_text("x\n")
    project.git("-C", "other", "add", ".")
    project.git("-C", "other", "commit", "-q", "-m", "x")
    project.git("add", "other")
    project.write(".signoff/constraints/safe.YAML", "summary: Safe.\npaths: ['srcc/**']\n")

    result = project.review("docs", "other")

    assert result.code == OK
    assert "left out (another repository): other" in result.out
    assert "left out (about none of these files): constraint safe" in result.out
