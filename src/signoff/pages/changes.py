"""The changes between two versions of a review, inline or side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from signoff.pages.diff import hunk_html, split_html
from signoff.pages.html import Markup, tag
from signoff.pages.parts import run_path
from signoff.review.history import ReviewHistory, Version

MOST_HUNKS = 200
"""Hunks that are shown at once; of a change with more, the first ones."""


class DiffView(StrEnum):
    """How changes are laid out."""

    INLINE = "inline"
    SPLIT = "split"


@dataclass(frozen=True)
class ChangesView:
    """Which changes are shown, and how."""

    run: str
    before: Version | None = None
    after: Version | None = None
    view: DiffView = DiffView.INLINE


def chosen_versions(
    history: ReviewHistory, first: int | None, last: int | None
) -> tuple[Version | None, Version | None]:
    """Returns the versions with these numbers; by default the last one and the one before."""
    after = history.version(last or 0) or (history.versions[-1] if history.versions else None)
    before = history.version(first or 0)
    if before is None and after is not None:
        before = history.version(after.number - 1)
    if before is not None and after is not None and before.number > after.number:
        # Read backward, no hunk would answer anything.
        return after, before
    return before, after


def changes_html(history: ReviewHistory, chosen: ChangesView) -> Iterator[Markup]:
    """Yields the choice of versions, and their hunks with the findings that they answer."""
    if len(history.versions) < 2 or chosen.before is None or chosen.after is None:
        yield tag("p", "There is only one version so far.", class_="soft")
        return
    yield _chooser(history, chosen)
    yield from changed_hunks(history, chosen.before, chosen.after, chosen.view)


def changed_hunks(
    history: ReviewHistory,
    before: Version,
    after: Version,
    view: DiffView = DiffView.INLINE,
    page: str = "",
) -> Iterator[Markup]:
    """Yields the hunks between two versions with the findings that they answer.

    `page` is the address of the page that has the findings, if it is another one.
    """
    files = history.changes(before, after)
    found = [(path, hunk) for path, hunks in files.items() for hunk in hunks]
    if not found:
        yield tag("p", "These versions are equal.", class_="soft")
    by_id = {each.id: each for each in history.findings}
    name = ""
    for path, hunk in found[:MOST_HUNKS]:
        if path and history.name_of(path) != name:
            name = history.name_of(path)
            yield tag("h3", name, class_="mono")
        yield (split_html if view is DiffView.SPLIT else hunk_html)(hunk, by_id, page)
    if len(found) > MOST_HUNKS:
        yield tag("p", f"{len(found) - MOST_HUNKS} more changes are not shown.", class_="soft")


def _chooser(history: ReviewHistory, chosen: ChangesView) -> Markup:
    views = [
        tag("option", words, value=view.value, selected=view is chosen.view)
        for view, words in ((DiffView.INLINE, "inline"), (DiffView.SPLIT, "side by side"))
    ]
    fields = [
        _versions("from", "From", history.versions, chosen.before),
        _versions("to", "to", history.versions, chosen.after),
        tag("label", tag("span", "View"), tag("select", views, name="view")),
        tag("button", "Compare", type="submit"),
    ]
    address = f"{run_path(chosen.run)}#changes"
    return tag("form", fields, method="get", action=address, class_="filter", id="compare",
               aria_label="Choose versions to compare", hx_morph_skip=True)  # fmt: skip


def _versions(name: str, label: str, versions: Sequence[Version], chosen: Version | None) -> Markup:
    options = [
        tag("option", _title(each), value=each.number, selected=each is chosen) for each in versions
    ]
    return tag("label", tag("span", label), tag("select", options, name=name))


def _title(version: Version) -> str:
    by = f" by {version.agent}" if version.agent else ""
    return f"version {version.number} (round {version.round}, {version.step}{by})"
