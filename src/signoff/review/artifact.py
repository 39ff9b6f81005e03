"""What is reviewed: one text, or a set of files; and where in it a quote is.

A single text is a set with one file that has no name, so findings, quotes and versions have one
mechanism. Lines and columns count from 1, and columns count characters (Unicode code points).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from signoff.core.digest import SHORT, digest, text_digest
from signoff.review.evidence import ArtifactText, Occurrence
from signoff.review.finding import Finding
from signoff.review.occurrence import nearest, place

UNNAMED = ""
"""The path of an artifact that is one text."""


def version_digest(artifact: str) -> str:
    """Returns the digest that names a version of a text."""
    return text_digest(artifact)[:SHORT]


class ArtifactVersion:
    """One version of what is reviewed; texts are prepared for quotes when they are first used."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self._texts: dict[str, ArtifactText] = {}
        self._digests: dict[str, str] = {}

    @classmethod
    def of(cls, content: str | Mapping[str, str] | ArtifactVersion) -> ArtifactVersion:
        """Returns an artifact for one text, or for texts by path."""
        if isinstance(content, ArtifactVersion):
            return content
        return cls({UNNAMED: content} if isinstance(content, str) else content)

    def __bool__(self) -> bool:
        """Whether there is any text."""
        return any(self.files.values())

    def text(self, path: str = UNNAMED) -> ArtifactText:
        """Returns the text of a file for looking up quotes; a missing file is empty."""
        if path not in self._texts:
            self._texts[path] = ArtifactText(self.files.get(path, ""))
        return self._texts[path]

    def digest(self, path: str = UNNAMED) -> str:
        """Returns the digest that names this version of a file."""
        if path not in self._digests:
            self._digests[path] = version_digest(self.files.get(path, ""))
        return self._digests[path]

    @property
    def version(self) -> str:
        """The digest that names this version of the whole artifact."""
        if list(self.files) == [UNNAMED]:
            return self.digest()
        return digest([[path, self.digest(path)] for path in sorted(self.files)])[:SHORT]


@dataclass(frozen=True)
class Location:
    """Where a passage is; columns are None if the quote is not in the text letter by letter."""

    path: str
    line: int
    end_line: int
    column: int | None = None
    end_column: int | None = None
    """The column after the last character."""

    def __str__(self) -> str:
        """Returns `path:line:column`, without the parts that are not known."""
        parts = [self.path, self.line, self.column]
        return ":".join(str(part) for part in parts if part not in (None, ""))


def locate(
    artifact: ArtifactVersion, quote: str, path: str = UNNAMED, line: int = 0
) -> Location | None:
    """Returns where a quote is in a file; None if it is not there.

    Of several equal passages it is the one on a line, or nearest to it.
    """
    if path not in artifact.files or not (found := artifact.text(path).occurrences(quote)):
        return None
    return _location(artifact, quote, path, nearest(found, line))


def locate_finding(artifact: ArtifactVersion, finding: Finding) -> Location | None:
    """Returns where a finding is; None if its passage is gone, or something is missing.

    Then only `finding.path` is known, which is empty for a single text.
    """
    if finding.path not in artifact.files:
        return None
    found = place([finding], artifact.text).get(finding.id)
    return _location(artifact, finding.quote, finding.path, found) if found is not None else None


def _location(artifact: ArtifactVersion, quote: str, path: str, found: Occurrence) -> Location:
    columns = _columns(artifact, path, quote.strip(), found)
    if columns is None:
        return Location(path, found.line, found.end_line)
    start, end_line, end = columns
    return Location(path, found.line, end_line + 1, start + 1, end + 1)


def _columns(
    artifact: ArtifactVersion, path: str, quote: str, found: Occurrence
) -> tuple[int, int, int] | None:
    """Returns the first column of a literal quote, and its last line and column, from 0."""
    text, starts = artifact.files[path], artifact.text(path).line_starts
    begin = starts[found.line - 1]
    line_end = starts[found.line] if found.line < len(starts) else len(text) + 1
    start = text.find(quote, begin, line_end + len(quote))
    if start < 0 or start >= line_end:
        return None
    end = start + len(quote)
    last_break = text.rfind("\n", 0, end)
    return start - begin, bisect_right(starts, end) - 1, end - last_break - 1
