"""Git reads the repository under review, and runs none of the programs that it names."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.acceptance.review_project import ReviewProject

PROGRAM = re.compile(
    r"(?!advice\.|color\.|column\.)"
    r".*(askpass|browser|clean|cmd|command|difffilter|driver|editor|external|fsmonitor|helper|hook"
    r"|hookspath|modulepath|\.path|pager|process|program|proxy|receivepack|smudge|\.textconv|tool"
    r"|uploadpack|vcs|viewer)"
    r"|(alias|pager)\..*",
    re.IGNORECASE,
)
"""The settings whose value is a program, or a folder or file with programs."""

MORE = (
    *("filter.<driver>.process", "gpg.openpgp.program", "gpg.x509.program", "gpg.ssh.program"),
    *(
        "submodule.<name>.update",
        "remote.<name>.url",
        "trailer.<token>.cmd",
        "tar.<format>.command",
    ),
)
"""Settings that `git help --config` does not list, or lists without their names."""

SWITCHES = {
    "core.repositoryformatversion": "1",
    "extensions.partialclone": "evil",
    "remote.evil.promisor": "true",
    "protocol.ext.allow": "always",
    "protocol.allow": "always",
    "filter.evil.required": "true",
    "log.showsignature": "true",
    "log.diffmerges": "on",
    "diff.autorefreshindex": "true",
    "diff.submodule": "diff",
    "diff.ignoresubmodules": "none",
    "submodule.recurse": "true",
    "safe.barerepository": "all",
}
"""Settings that make git use programs it would not run otherwise."""

HOOKS = (
    "post-index-change",
    "fsmonitor-watchman",
    "post-checkout",
    "pre-auto-gc",
    "query-watchman",
)


class HostileProject:
    """A repository that names a program wherever git takes one; each leaves its name."""

    def __init__(self, project: ReviewProject) -> None:
        self.project = project
        self.programs = project.folder / ".git/programs"
        self.marks = project.folder / "marks"

    def plant(self) -> None:
        """Gives the repository its programs; a test asks git for nothing after that."""
        self.marks.mkdir()
        self.programs.mkdir()
        self._sign_last_commit()
        settings = {**self._settings(), **SWITCHES}
        for hook in HOOKS:
            self._program(hook)
        (self.project.folder / ".git/included").write_text(
            _section({"filter.included.clean": str(self._program("include.path"))})
        )
        with (self.project.folder / ".git/config").open("a") as config:
            config.write(_section(settings))
        (self.project.folder / ".git/info/attributes").write_text(
            "*.md filter=evil diff=evil merge=evil\n*.txt filter=included\n"
        )
        module = self.project.folder / "module"
        (module / ".gitattributes").write_text("* filter=submodule\n")
        os.utime(module / "page.md", (1, 1))
        with (module / ".git/config").open("a") as config:
            config.write(_section({"filter.submodule.clean": str(self._program("submodule"))}))

    def ran(self) -> list[str]:
        """Returns the programs that have run."""
        return sorted(each.name for each in self.marks.iterdir())

    def _settings(self) -> dict[str, str]:
        listed = subprocess.run(["git", "help", "-c"], capture_output=True, text=True, check=True)
        known = [each for each in listed.stdout.split() if PROGRAM.fullmatch(each)]
        assert len(known) > 40, "git lists its settings in another way"
        keys = [re.sub(r"<\w+>|\*", "evil", each) for each in (*known, *MORE)]
        settings = {key.lower(): str(self._program(key)) for key in keys}
        settings["core.hookspath"] = str(self.programs)
        settings["include.path"] = str(self.project.folder / ".git/included")
        settings["remote.evil.url"] = f"ext::{self._program('remote.evil.url')}"
        return settings

    def _program(self, name: str) -> Path:
        program = self.programs / name
        program.write_text(f'#!/bin/sh\n: > "{self.marks}/{name}"\nexec cat\n')
        program.chmod(0o755)
        return program

    def _sign_last_commit(self) -> None:
        folder = self.project.folder
        text = self.project.git("cat-file", "commit", "HEAD")
        header, _, message = text.partition("\n\n")
        signature = (
            "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iHUE\n -----END PGP SIGNATURE-----\n "
        )
        signed = subprocess.run(
            ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
            cwd=folder,
            input=f"{header}\n{signature.rstrip()}\n\n{message}",
            text=True,
            capture_output=True,
            check=True,
        )
        self.project.git("update-ref", "HEAD", signed.stdout.strip())


def _section(settings: Mapping[str, str]) -> str:
    lines = []
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        first, _, rest = section.partition(".")
        lines.append(f'[{first} "{rest}"]' if rest else f"[{first}]")
        lines.append(f'\t{name} = "{value}"')
    return "\n".join(lines) + "\n"


def _submodule(project: ReviewProject) -> None:
    """Adds a submodule to the project."""
    module = project.folder / "module"
    module.mkdir()
    project.git("init", "-q", "module")
    project.write("module/page.md", "A page.\n")
    project.git("-C", "module", "add", "-A")
    project.git("-C", "module", "commit", "-q", "-m", "module")
    project.write(".gitmodules", '[submodule "module"]\n\tpath = module\n\turl = ./module\n')
    project.commit("module")
    project.git("submodule", "init")


@pytest.fixture
def hostile(review_project: ReviewProject) -> HostileProject:
    """A branch with a change of each kind, and a submodule with programs of its own."""
    project = review_project
    project.write("docs/note.txt", "It was so.\n")
    _submodule(project)
    project.git("checkout", "-q", "-b", "topic")
    project.write("docs/new.md", "It never fails.\n")
    project.commit("topic")
    project.write("docs/a.md", "The server uses port 81.\n\nIt always works.\n")
    project.write("docs/note.txt", "It is so.\n")
    os.utime(project.folder / "docs/b.md", (1, 1))
    return HostileProject(project)


REVIEWS = {
    "a folder": ("docs",),
    "a file": ("docs/a.md",),
    "a change": ("--diff", "main"),
    "a change, with the rules of the base": ("--diff", "main", "--config-from", "base"),
    "a dry run": ("--diff", "main", "--dry-run"),
    "a fix": ("--diff", "main", "--fix"),
}


def test_a_review_runs_no_program_that_the_repository_names(
    hostile: HostileProject, subtests: pytest.Subtests
) -> None:
    hostile.plant()

    for number, (title, arguments) in enumerate(REVIEWS.items()):
        with subtests.test(title):
            result = hostile.project.review(*arguments, "--name", f"r{number}")

            assert result.code in (0, 18), result.out + result.err
            assert hostile.ran() == []


def test_filtered_files_are_named_as_not_read(hostile: HostileProject) -> None:
    """Their text in the repository is another one, so what changed cannot be told."""
    hostile.plant()

    result = hostile.project.review("--diff", "main")

    assert result.code != 0
    assert "not read (filtered by git): docs/a.md, docs/new.md, docs/note.txt" in result.out


def test_missing_objects_are_not_fetched(hostile: HostileProject) -> None:
    """A partial clone gets them with the programs and addresses of its own configuration."""
    project = hostile.project
    oid = project.git("rev-parse", "main:docs/a.md").strip()
    hostile.plant()
    (project.folder / ".git/info/attributes").unlink()
    (project.folder / f".git/objects/{oid[:2]}/{oid[2:]}").unlink()

    result = project.review("--diff", "main")

    assert result.code == 2
    assert "partial clone" in result.err
    assert hostile.ran() == []


def test_a_folder_that_looks_like_a_repository_is_not_one(
    hostile: HostileProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be committed with its configuration, and git would use it inside of that folder."""
    project = hostile.project
    bare = project.folder / "docs/bare"
    project.git("init", "-q", "--bare", str(bare))
    (bare / ".signoff").mkdir()
    (bare / ".signoff/config.yaml").write_text("version: 1\n")
    (bare / "page.md").write_text("A page.\n")
    hostile.marks.mkdir()
    hostile.programs.mkdir()
    program = hostile._program("fsmonitor")
    with (bare / "config").open("a") as config:
        config.write(f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = {program}\n")
    monkeypatch.chdir(bare)

    result = project.call("review", ".", "--preset", "docs", "--agent", "manual", "--dry-run")

    assert result.code == 2
    assert "bare repository" in result.err
    assert hostile.ran() == []


def test_the_users_own_ignored_files_and_trusted_folders_hold(
    hostile: HostileProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = hostile.project
    excludes = project.write("home/ignored", "new-*\n")
    project.write("home/.gitconfig", f"[core]\n\texcludesFile = {excludes}\n")
    project.write("docs/new-page.md", "A page.\n")

    assert "new-page" not in project.review("docs", "--dry-run").out
    # Git looks at the owner of the folder as if it belonged to somebody else.
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    refused = project.review("docs", "--dry-run")
    assert (refused.code, "dubious ownership" in refused.err) == (2, True)
    with (project.folder / "home/.gitconfig").open("a") as config:
        config.write(f"[safe]\n\tdirectory = {project.folder}\n")
    assert project.review("docs", "--dry-run").code == 0
