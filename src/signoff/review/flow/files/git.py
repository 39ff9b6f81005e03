"""What git knows about the files of a project: which there are, and what has changed.

Git is only read. Names go to it after `--`, and a revision is resolved first, so neither can pass
for an option.

A repository under review may be hostile, and its configuration can name a program for nearly
everything that git does. Nothing here runs one. Only commands that read are used, and those that
have settings for programs are told to do without: no hooks, no file system monitor, no filters, no
signature checks, no diff programs, no questions to submodules, and no fetching of missing objects.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shutil import which

from signoff.core.errors import UsageError, WriteFailed

SECONDS = 60
PARTIAL = (
    "this repository is a partial clone that lacks what the review compares with, and a review "
    "fetches nothing; run: git fetch --refetch --no-filter"
)
_NOT_FETCHED = ("promisor", "lazy fetching", "transport")
"""Words of git's errors about objects that it has to fetch; the last is that of older versions."""
LONGEST_LOG = 4_000
"""Characters of commit messages that critics get."""
_LITERAL = ":(literal)"
"""Before a path: a folder may be called `[id]` or `:(exclude)src`."""
_DIGEST, _WHOLE_DIGEST = re.compile(r"[0-9a-f]{4,}"), re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SUFFIX = re.compile(r"[~^@:].*", re.DOTALL)
"""What follows a name in a revision, as in `main~2`."""
_SET_FOR_HOOKS = frozenset({"GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX"})
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    # A folder of the project that looks like a bare repository would be taken for one, with its
    # own configuration.
    "safe.bareRepository": "explicit",
}
"""What holds whatever the configuration of a repository says."""
_VARIABLES = {
    # Git writes an index that it has refreshed, and calls a hook for it.
    "GIT_OPTIONAL_LOCKS": "0",
    # Missing objects of a partial clone would be fetched with programs that the repository names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # for git before 2.44, which does not know the other
}


@dataclass(frozen=True)
class ChangedFile:
    """One file of a change."""

    path: str
    old_path: str
    """Where it was before; the same unless it was renamed."""
    deleted: bool = False
    added: bool = False


@dataclass(frozen=True)
class TreeFile:
    """One file of a commit."""

    path: str
    mode: str
    """As git writes it: `120000` is a link, `100755` a program."""
    content: bytes


@dataclass(frozen=True)
class Repository:
    """The repository that a folder belongs to; paths are relative to that folder."""

    root: Path

    @classmethod
    def around(cls, root: Path) -> Repository | None:
        """Returns the repository of a folder; None if there is none, or no git.

        Raises `GitError` if git refuses one, such as that of another user: without git, files
        that it ignores would be reviewed.
        """
        try:
            inside = _git(root, _SETTINGS, "rev-parse", "--is-inside-work-tree")
        except GitError:
            folders = (root.resolve(), *root.resolve().parents)
            if which("git") and any((each / ".git").exists() for each in folders):
                raise
            return None
        return cls(root) if inside.strip() == b"true" else None

    def files(self, folder: str) -> list[str]:
        """Returns the files in a folder that git does not ignore, whether committed or not."""
        listed = self._run(
            *("ls-files", "-z", "--cached", "--others", "--exclude-standard"),
            *("--", f"{_LITERAL}{folder}"),
        )
        return sorted(set(_names(listed)))

    def tracked(self, folder: str) -> list[str]:
        """Returns what git tracks below a folder, or the folder itself if it is a link."""
        return _names(self._run("ls-files", "-z", "--", f":(icase,literal){folder}"))

    def commit(self, revision: str) -> str:
        """Returns the commit that a name means; raises `UsageError`."""
        if revision and not revision.strip("0"):
            raise UsageError(
                f"{revision} is no commit: CI systems name it as the one before the first push of "
                "a branch; name the branch that it started from, such as origin/main"
            )
        try:
            found = self._run(
                "rev-parse", "--verify", "-q", "--end-of-options", f"{revision}^{{commit}}"
            )
        except GitError as error:
            raise UsageError(
                f"git has no commit {revision!r} here; fetch it first, or name another one "
                "(in CI, a shallow clone has only the last commit: fetch the whole history)"
            ) from error
        if self._is_ambiguous(revision):
            raise UsageError(
                f"{revision!r} is the name of several commits here, such as a tag and a branch; "
                "name one in full: refs/heads/NAME, refs/remotes/NAME or refs/tags/NAME"
            )
        return found.decode().strip()

    def _is_ambiguous(self, revision: str) -> bool:
        """Whether a name means several commits: git would take a tag that anyone has pushed.

        A tag `origin/main` at the tip of a change would make that change look empty.
        """
        name = _SUFFIX.sub("", revision)
        if not name or name == "HEAD" or name.startswith("refs/") or _WHOLE_DIGEST.fullmatch(name):
            return False
        prefixes = ("refs/tags/", "refs/heads/", "refs/remotes/")
        found = {commit for prefix in prefixes if (commit := self._resolved(f"{prefix}{name}"))}
        if found and _DIGEST.fullmatch(name):
            # A name like the beginning of a digest, and no digest of what it is the name of.
            return not all(each.startswith(name) for each in found)
        return len(found) > 1

    def _resolved(self, reference: str) -> str:
        try:
            return self._run("rev-parse", "--verify", "-q", f"{reference}^{{commit}}").decode()
        except GitError:
            return ""

    def fork_point(self, commit: str) -> str:
        """Returns where the current branch left another one; the commit itself if it never did."""
        try:
            return self._run("merge-base", commit, "HEAD").decode().strip()
        except GitError:
            return commit

    def changes(self, commit: str, paths: Sequence[str]) -> list[ChangedFile]:
        """Returns what has changed since a commit, with what is not committed or not added yet."""
        inside = [f"{_LITERAL}{path}" for path in paths]
        status = self._run(
            *("diff", "--name-status", "-z", "-M", "--no-ext-diff", "--no-textconv"),
            # Otherwise, git asks the repository of a submodule what has changed in it.
            *("--ignore-submodules=dirty", "--relative", commit, "--", *inside),
        )
        changed = list(_changed(_names(status)))
        others = self._run("ls-files", "-z", "--others", "--exclude-standard", "--", *inside)
        known = {each.path for each in changed}
        new = [ChangedFile(path, path, added=True) for path in _names(others) if path not in known]
        return [*changed, *new]

    def texts(self, commit: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Returns files as they were in a commit; those that it does not have are left out."""
        requests = "".join(f"{commit}:./{path}\n" for path in paths if "\n" not in path)
        # One call for all files: starting git a thousand times takes longer than the review's
        # prompts.
        output = self._run("cat-file", "--batch", stdin=os.fsencode(requests))
        return dict(_blobs(output, [path for path in paths if "\n" not in path]))

    def messages(self, commit: str) -> str:
        """Returns the messages of the commits since another one, the oldest first."""
        # Not `git log`, which checks signatures if the configuration says so.
        plain = ("--reverse", "--no-commit-header", "--format=%B")
        log = self._run("rev-list", *plain, f"{commit}..HEAD", "--")
        return log.decode(errors="replace").strip()[:LONGEST_LOG]

    def marked(self, paths: Sequence[str]) -> dict[str, str]:
        """Returns files that `.gitattributes` calls generated or vendored, and which it is."""
        return {
            path: name.removeprefix("linguist-")
            for path, name, value in self._attributes(
                paths, "linguist-generated", "linguist-vendored"
            )
            if value in ("set", "true")
        }

    def filtered(self, paths: Sequence[str]) -> set[str]:
        """Returns files whose content in the repository only a program can tell, such as LFS."""
        drivers = {*self._filter_drivers, "lfs"}
        return {path for path, _, value in self._attributes(paths, "filter") if value in drivers}

    def tree(self, commit: str) -> Iterator[TreeFile]:
        """Yields the files of a commit below this folder, as they are in the repository."""
        listed = [each.partition("\t") for each in _names(self._run("ls-tree", "-r", "-z", commit))]
        modes = {path: about.split() for about, _, path in listed}
        blobs = {path: oid for path, (_, kind, oid) in modes.items() if kind == "blob"}
        output = self._run("cat-file", "--batch", stdin="\n".join([*blobs.values(), ""]).encode())
        contents = dict(_blobs(output, list(blobs)))
        for path in blobs:
            if path not in contents:
                raise GitError(f"git has no content of {path} in {commit}; fetch it first")
            yield TreeFile(path, modes[path][0], contents[path])

    def _attributes(self, paths: Sequence[str], *names: str) -> Iterator[tuple[str, str, str]]:
        """Yields a path, the name of an attribute and its value, for each of both."""
        if not paths:
            return
        output = self._run(
            "check-attr", "-z", "--stdin", *names, stdin=os.fsencode("\0".join(paths))
        )
        words = _names(output)
        yield from zip(words[::3], words[1::3], words[2::3], strict=False)

    @cached_property
    def _filter_drivers(self) -> frozenset[str]:
        """The filters that are configured; reading the configuration runs nothing."""
        listed = _git(self.root, _SETTINGS, "config", "--list", "--name-only", "-z")
        keys = [key for key in _names(listed) if key.startswith("filter.") and key.count(".") > 1]
        return frozenset(key.removeprefix("filter.").rpartition(".")[0] for key in keys)

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        settings = {
            f"filter.{name}.{key}": "false" if key == "required" else ""
            for name in self._filter_drivers
            for key in ("clean", "smudge", "process", "required")
        }
        return _git(self.root, {**_SETTINGS, **settings}, *arguments, stdin=stdin)


def _git(root: Path, settings: Mapping[str, str], *arguments: str, stdin: bytes = b"") -> bytes:
    """Runs git with settings that override those of the repository; raises `GitError`."""
    try:
        done = subprocess.run(  # arguments are our own, names come after `--`
            ["git", *arguments],  # the user's git, from PATH
            cwd=root,
            env=_environment(os.environ, settings),
            input=stdin,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git {arguments[0]} failed: {error}") from error
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()
        if any(each in why for each in _NOT_FETCHED):
            raise GitError(PARTIAL)
        lines = why.splitlines()
        fatal = [line for line in lines if line.startswith("fatal:")] or lines
        raise GitError(f"git {arguments[0]} failed: {''.join(fatal[:1])}")
    return done.stdout


def _environment(variables: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment for git, without what git tells the programs of its hooks.

    A hook gets the repository relative to the folder it starts in, and git takes the folder of a
    project for the top of that repository then. A repository that a user names comes with a folder
    for its files, and stays.
    """
    hidden = frozenset() if "GIT_WORK_TREE" in variables else _SET_FOR_HOOKS
    inherited = {name: value for name, value in variables.items() if name not in hidden}
    # As variables, because the name of a filter may contain what `-c` takes for its end.
    first = int(inherited.get("GIT_CONFIG_COUNT") or 0)
    overrides = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (key, value) in enumerate(settings.items(), first):
        overrides |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**inherited, **_VARIABLES, **overrides}


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


_FOLDER = "runs/.base"
"""Inside the home; runs are not committed, and no run has a hidden name."""
_OWN = ("runs/", "signoff.db")
"""How paths of files begin that only signoff writes, inside the home."""
_LINK, _PROGRAM = "120000", "100755"
"""Modes of git."""
MOST_TREES = 10
UNUSED_SECONDS = 86_400.0
"""Of more trees than that, those that no review has used for this long are deleted."""


def base_tree(repository: Repository, commit: str, home: Path) -> Path:
    """Returns a folder with the files of a commit; it is made once for each commit.

    It always has a home of its own, so that no setting of the project around it is found. Raises
    `UsageError` if the change brings files that only signoff writes: one could be a forged tree.
    """
    _check_untracked(repository, home)
    folder = home / _FOLDER / commit
    try:
        if folder.is_dir():
            os.utime(folder)
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(repository.tree(commit), folder, home.name)
        _prune(folder.parent)
    except OSError as error:
        raise WriteFailed(f"cannot write the files of {commit}: {error}") from error
    return folder


def _check_untracked(repository: Repository, home: Path) -> None:
    for path in repository.tracked(home.name):
        # Compared without case, as some file systems do. A home that is a link has one entry.
        inside = path.lower().removeprefix(f"{home.name}/".lower())
        if path.lower() == home.name.lower() or f"{inside}/".startswith(_OWN):
            raise UsageError(
                f"git tracks {path}, which only signoff writes: rules could be forged with it; "
                "remove it from the repository"
            )


def _write(files: Iterable[TreeFile], folder: Path, home: str) -> None:
    draft = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        for file in files:
            if _stays_inside(file, draft):
                _write_file(file, draft / file.path)
            elif file.path.startswith(f"{home}/"):
                # No rule may get lost that way.
                raise WriteFailed(f"{file.path} leads outside the project")
        (draft / home).mkdir(exist_ok=True)
        os.utime(draft)
        _move(draft, folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _stays_inside(file: TreeFile, folder: Path) -> bool:
    """Tells whether a file, and what it links to, is inside the folder."""
    # Checked with links resolved: a commit may contain a link to a folder, and then a file below
    # it.
    paths = [folder / file.path]
    if file.mode == _LINK:
        paths.append(paths[0].parent / os.fsdecode(file.content))
    return all(path.resolve().is_relative_to(folder.resolve()) for path in paths)


def _write_file(file: TreeFile, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.mode == _LINK:
        path.symlink_to(os.fsdecode(file.content))
        return
    path.write_bytes(file.content)
    if file.mode == _PROGRAM:
        path.chmod(0o755)


def _move(draft: Path, folder: Path) -> None:
    try:
        draft.rename(folder)
    except OSError:
        # Another process was faster; both have the same files.
        if not folder.is_dir():
            raise
        shutil.rmtree(draft, ignore_errors=True)


def _prune(trees: Path) -> None:
    """Deletes old trees: each is a copy of the whole project."""
    # Each use touches its tree, so the time says when a review last needed it.
    used = sorted(((each.stat().st_mtime, each) for each in trees.iterdir()), reverse=True)
    for at, tree in used[MOST_TREES:]:
        if at < time.time() - UNUSED_SECONDS:
            shutil.rmtree(tree, ignore_errors=True)
