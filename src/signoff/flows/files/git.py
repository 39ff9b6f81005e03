"""What git knows about the files of a project: which there are, and what has changed.

Git is only read. Names go to it after `--`, and a revision is resolved first, so neither can pass
for an option. Programs that the configuration of a repository may name are not run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import which

from signoff.errors import UsageError
from signoff.light_dataclass import light_dataclass

SECONDS = 60
LONGEST_LOG = 4_000
"""Characters of commit messages that critics get."""
_SET_FOR_HOOKS = frozenset({"GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX"})
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false")


@light_dataclass(frozen=True)
class ChangedFile:
    """One file of a change."""

    path: str
    old_path: str
    """Where it was before; the same unless it was renamed."""
    deleted: bool = False
    added: bool = False


@light_dataclass(frozen=True)
class Repository:
    """The repository that a folder belongs to; paths are relative to that folder."""

    root: Path

    @classmethod
    def around(cls, root: Path) -> Repository | None:
        """Returns the repository of a folder; None if there is none, or no git.

        Raises `GitError` if git refuses one, such as that of another user: without git, files
        that it ignores would be reviewed.
        """
        repository = cls(root)
        try:
            inside = repository._run("rev-parse", "--is-inside-work-tree")
        except GitError:
            folders = (root.resolve(), *root.resolve().parents)
            if which("git") and any((each / ".git").exists() for each in folders):
                raise
            return None
        return repository if inside.strip() == b"true" else None

    def files(self, folder: str) -> list[str]:
        """Returns the files in a folder that git does not ignore, whether committed or not."""
        listed = self._run(
            "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", folder
        )
        return sorted(set(_names(listed)))

    def tracked(self, folder: str) -> list[str]:
        """Returns what git tracks below a folder, or the folder itself if it is a link."""
        return _names(self._run("ls-files", "-z", "--", f":(icase,literal){folder}"))

    def commit(self, revision: str) -> str:
        """Returns the commit that a name means; raises `UsageError`."""
        try:
            found = self._run(
                "rev-parse", "--verify", "-q", "--end-of-options", f"{revision}^{{commit}}"
            )
        except GitError as error:
            raise UsageError(
                f"git has no commit {revision!r} here; fetch it first, or name another one "
                "(in CI, a shallow clone has only the last commit: fetch the whole history)"
            ) from error
        return found.decode().strip()

    def fork_point(self, commit: str) -> str:
        """Returns where the current branch left another one; the commit itself if it never did."""
        try:
            return self._run("merge-base", commit, "HEAD").decode().strip()
        except GitError:
            return commit

    def changes(self, commit: str, paths: Sequence[str]) -> list[ChangedFile]:
        """Returns what has changed since a commit, with what is not committed or not added yet."""
        status = self._run(
            *("diff", "--name-status", "-z", "-M", "--no-ext-diff", "--no-textconv"),
            *("--relative", commit, "--", *paths),
        )
        changed = list(_changed(_names(status)))
        others = self._run("ls-files", "-z", "--others", "--exclude-standard", "--", *paths)
        known = {each.path for each in changed}
        new = [ChangedFile(path, path, added=True) for path in _names(others) if path not in known]
        return [*changed, *new]

    def texts(self, commit: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Returns files as they were in a commit; those that it does not have are left out."""
        requests = "".join(f"{commit}:./{path}\n" for path in paths if "\n" not in path)
        output = self._run("cat-file", "--batch", stdin=os.fsencode(requests))
        return dict(_blobs(output, [path for path in paths if "\n" not in path]))

    def messages(self, commit: str) -> str:
        """Returns the messages of the commits since another one, the oldest first."""
        log = self._run("log", "--reverse", "--format=%B", f"{commit}..HEAD", "--")
        return log.decode(errors="replace").strip()[:LONGEST_LOG]

    def marked(self, paths: Sequence[str]) -> dict[str, str]:
        """Returns files that `.gitattributes` calls generated or vendored, and which it is."""
        output = self._run(
            *("check-attr", "-z", "--stdin", "linguist-generated", "linguist-vendored"),
            stdin=os.fsencode("\0".join(paths)),
        )
        words = _names(output)
        triples = zip(words[::3], words[1::3], words[2::3], strict=False)
        return {
            path: name.removeprefix("linguist-")
            for path, name, value in triples
            if value in ("set", "true")
        }

    def archive(self, commit: str) -> bytes:
        """Returns the files of a commit below this folder, as a tar archive."""
        prefix = self._run("rev-parse", "--show-prefix").decode().strip()
        return self._run("archive", "--format=tar", f"{commit}:{prefix}" if prefix else commit)

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        try:
            done = subprocess.run(  # arguments are our own, names come after `--`
                ["git", *_SAFE, *arguments],  # the user's git, from PATH
                cwd=self.root,
                env=_environment(os.environ),
                input=stdin,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitError(f"git {arguments[0]} failed: {error}") from error
        if done.returncode:
            why = done.stderr.decode(errors="replace").strip().splitlines()
            raise GitError(f"git {arguments[0]} failed: {''.join(why[:1])}")
        return done.stdout


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment for git, without what git tells the programs of its hooks.

    A hook gets the repository relative to the folder it starts in, and git takes the folder of a
    project for the top of that repository then. A repository that a user names comes with a folder
    for its files, and stays.
    """
    if "GIT_WORK_TREE" in variables:
        return dict(variables)
    return {name: value for name, value in variables.items() if name not in _SET_FOR_HOOKS}


class GitError(UsageError):
    """Git could not answer; check the repository with `git status`."""


def _names(output: bytes) -> list[str]:
    return [os.fsdecode(each) for each in output.split(b"\0") if each]


def _changed(words: Sequence[str]) -> Iterator[ChangedFile]:
    """Yields the entries of `--name-status -z`: a letter, then one path, or two of a rename."""
    position = 0
    while position < len(words):
        letter, old = words[position][:1], words[position + 1]
        renamed = letter in ("R", "C")
        new = words[position + 2] if renamed else old
        position += 3 if renamed else 2
        yield ChangedFile(new, old, deleted=letter == "D", added=letter in ("A", "C"))


def _blobs(output: bytes, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yields the answers of `cat-file --batch`: a line with the size, the content, a line break."""
    position = 0
    for path in paths:
        end = output.index(b"\n", position)
        words = output[position:end].split()
        position = end + 1
        if len(words) != 3 or not words[2].isdigit():
            continue
        size = int(words[2])
        if words[1] == b"blob":
            yield path, output[position : position + size]
        position += size + 1
