"""What one event adds to a review, for views that show a review while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.light_dataclass import light_dataclass
from signoff.review.history import Judgment, Version


@light_dataclass(frozen=True)
class IssuesReported:
    """A critic has read the artifact against one constraint."""

    constraint: str
    reviewer: str
    issues: tuple[Mapping[str, Any], ...]
    """What it reports, as its critique has it; empty if it found nothing."""
    places: tuple[str, ...] = ()
    """The file and the line of each issue."""
    usable: bool = True
    """Whether the answer was a review; if not, nothing that it says counts."""
    decided_by: str = ""
    """The human who decided, because the critic gave no usable review."""


@light_dataclass(frozen=True)
class ArtifactChanged:
    """A step has written another version."""

    step: str
    round: int
    before: Version
    after: Version


@light_dataclass(frozen=True)
class Judged:
    """A judge has decided."""

    judgment: Judgment


ReviewNews = IssuesReported | ArtifactChanged | Judged
