"""What the shipped providers of standards have in common: a folder of files, and scopes."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field, ValidationError

from signoff.documents.files import read_text
from signoff.documents.mistakes import mistakes_of
from signoff.documents.sections import Section
from signoff.errors import Problem, ProviderError
from signoff.profiles.providers import StandardsProvider

RESPONSE_SECONDS = 30.0
"""Reading all files may take this long; the folder may be on a network."""


class FolderConfig(Section):
    """The configuration that all providers with a folder have."""

    provider: str = ""
    """The key of the provider, for the engine."""
    root: Path = Field(description="the folder of the standards")
    scope: str = ""
    """The scope to use; by default the `scope` of the context."""


C = TypeVar("C", bound=FolderConfig)
S = TypeVar("S")


class FolderStandards(StandardsProvider, Generic[C]):
    """Creates a bundle from the files of a folder; without a configuration it is empty."""

    model: ClassVar[type[Any]]
    """The pydantic model of its configuration, a `C`."""

    def validate(self) -> None:
        """Raises `ProviderError` with everything that is wrong with its configuration."""
        if self.config:
            self._read_config()

    def create_bundle(
        self,
        context: Mapping[str, Any],
        connection_timeout: float | None = None,  # noqa: ARG002  # nothing is connected to
        response_timeout: float | None = None,
    ) -> str:
        """Returns the standards of the context's scope; raises `ProviderError`.

        An unknown scope is a `ValueError`, which lists the known ones.
        """
        if not self.config:
            return ""
        config = self._read_config()
        scope = config.scope or str(context.get("scope") or "")
        seconds = RESPONSE_SECONDS if response_timeout is None else response_timeout
        return self._bundle(config, scope, StandardsFiles(self._root(config), seconds))

    @abstractmethod
    def _bundle(self, config: C, scope: str, files: StandardsFiles) -> str:
        """Returns the standards of a scope."""

    def _read_config(self) -> C:
        try:
            config: C = self.model.model_validate(dict(self.config))
        except ValidationError as error:
            mistakes = mistakes_of(error, self.model)
            problems = [
                each.problem(lambda _path: "configuration of the standards") for each in mistakes
            ]
            raise ProviderError("; ".join(map(str, problems))) from error
        problem = self._problem(config)
        if problem:
            raise ProviderError(f"configuration of the standards: {problem}")
        return config

    def _problem(self, config: C) -> str:
        """Returns what is wrong with a configuration as a whole; empty if nothing is."""
        root = self._root(config)
        return "" if root.is_dir() else f"the folder {root} does not exist"

    def _root(self, config: C) -> Path:
        own = os.path.expanduser(config.root)  # noqa: PTH111  # raises for no user, unlike Path's
        return Path(self.folder, own).resolve()


class StandardsFiles:
    """Reads the files of a folder before a deadline, and nothing outside of it."""

    def __init__(self, root: Path, seconds: float) -> None:
        self._root = root
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def names(self, pattern: str) -> list[str]:
        """Returns the names of the files that match a pattern, sorted."""
        return sorted(path.name for path in self._root.glob(pattern))

    def read(self, names: Iterable[str]) -> dict[str, str]:
        """Returns the texts of files by name; raises `ProviderError` with every problem."""
        texts: dict[str, str] = {}
        problems: list[Problem] = []
        for name in dict.fromkeys(names):
            # Checked between files: a slow network folder ends the reading, and one large file does
            # not.
            if time.monotonic() > self._deadline:
                raise ProviderError(f"reading the standards took more than {self._seconds:g} s")
            # Resolved before it is compared, so a link inside the folder cannot lead out of it.
            path = Path(self._root, name).resolve()
            if not path.is_relative_to(self._root):
                problems.append(
                    Problem(name, f"is outside the folder of the standards {self._root}")
                )
                continue
            text = read_text(path, problems, name=str(path))
            if text is not None:
                texts[name] = text
        if problems:
            raise ProviderError("; ".join(map(str, problems)))
        return texts


def choose_scope(scopes: Mapping[str, S], name: str) -> S:
    """Returns a scope by its name; raises `ValueError`, which lists the known ones."""
    if name in scopes:
        return scopes[name]
    known = ", ".join(sorted(scopes)) or "none"
    what = f"unknown scope {name!r}" if name else "the context has no scope"
    raise ValueError(f"{what}; valid: {known}")


def join_files(texts: Mapping[str, str]) -> str:
    """Returns the texts of files one after the other, each under its name."""
    trimmed = {name: text.strip("\n") for name, text in texts.items()}
    return "\n".join(f"--- {name} ---\n{text}\n" for name, text in trimmed.items())
