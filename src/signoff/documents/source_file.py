"""A YAML file that is read and parsed once, however many notations look at it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from signoff.core.errors import Problem
from signoff.documents.files import display_path, read_text
from signoff.documents.yaml_text import Document, as_mapping, newer_version, read_yaml


@dataclass(frozen=True)
class SourceFile:
    """A YAML file that a user wrote; its content is read on first use."""

    path: Path

    @property
    def name(self) -> str:
        """The path as problems report it."""
        return display_path(self.path)

    @property
    def content(self) -> Any:
        """The content as plain values; None if the file cannot be read."""
        document, _ = self._parsed
        return document.content if document is not None else None

    def mapping(self, problems: list[Problem], what: str, version: int) -> Document | None:
        """Returns the file if it contains a mapping; otherwise None, with a problem added.

        `what` names the expected entries in the message, and `version` is the newest version
        of the format that the caller can read.
        """
        document, parse_problems = self._parsed
        problems.extend(parse_problems)
        document = as_mapping(document, problems, what) if document is not None else None
        newer = newer_version(document, version) if document is not None else None
        if newer is not None:
            # Its other keys may be valid in that version, so nothing else is reported.
            problems.append(newer)
            return None
        return document

    @cached_property
    def _parsed(self) -> tuple[Document | None, tuple[Problem, ...]]:
        problems: list[Problem] = []
        text = read_text(self.path, problems)
        document = read_yaml(text, self.name, problems) if text is not None else None
        return document, tuple(problems)
