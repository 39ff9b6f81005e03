"""The product's words: what became of a finding.

Logs, JSON, REST documents, exports, pages and messages take the words for findings from here, so
that a person meets one word for one thing. `tests/architecture/test_words.py` has the words that
are not used any more, and looks for them in every text of the package. File formats and Python
names that a specification prescribes keep its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from signoff.core.errors import UnknownName


class Label(StrEnum):
    """What became of a finding in a round; the values are the words in data."""

    NEW = "new"
    STILL_OPEN = "still_open"
    BACK = "back"
    """It was fixed before."""
    CAUSED_BY_FIX = "caused_by_fix"
    """It is new, and about words that the last change added."""
    FIXED = "fixed"
    DISMISSED = "dismissed"
    """The judge or a human decided not to fix it."""
    IGNORED = "ignored"
    """Logged and not shown to the judge: the word of the flow files (`behavior: ignore`)."""

    @property
    def words(self) -> str:
        """The same on screen: `still open`."""
        return _ON_SCREEN.get(self, self.value)

    @property
    def is_open(self) -> bool:
        """Whether the finding has yet to be fixed or dismissed."""
        return self in OPEN

    @property
    def is_addition(self) -> bool:
        """Whether the finding was not open before this round."""
        return self in ADDITIONS


_ON_SCREEN: Mapping[Label, str] = {
    Label.STILL_OPEN: "still open",
    Label.CAUSED_BY_FIX: "caused by a fix",
}

ADDITIONS = (Label.NEW, Label.CAUSED_BY_FIX, Label.BACK)
"""What a round adds to the open findings."""
OPEN = (*ADDITIONS, Label.STILL_OPEN)
CHANGES = (*ADDITIONS, Label.FIXED)
"""What changes in a round, in the order of its columns."""


class FindingStatus(StrEnum):
    """What has to happen to a finding; `Finding.became` is what people and programs see."""

    OPEN = "open"
    ADDRESSED = "addressed"
    """Changed as a human requested at a sign-off, who has yet to decide about the change."""
    FIXED = "fixed"
    DISMISSED = "dismissed"
    IGNORED = "ignored"
    """Not shown to the judge: see `is_set_aside`."""

    @property
    def words(self) -> str:
        """How people read it: as the heading of a group, or after a number."""
        return "awaiting your sign-off" if self is FindingStatus.ADDRESSED else self.value


def read_labels(names: Iterable[str]) -> frozenset[Label]:
    """Returns the labels that a filter names; `open` stands for all that are open."""
    labels: set[Label] = set()
    for name in names:
        plain = name.lower().replace(" ", "_")
        if plain == FindingStatus.OPEN.value:
            labels |= {*OPEN}
        elif plain in {*Label}:
            labels.add(Label(plain))
        else:
            raise UnknownName("status", name, FILTERS)
    return frozenset(labels)


FILTERS = (FindingStatus.OPEN.value, *(each.value for each in Label))
"""The names that `read_labels` knows."""


PASSED = "passed"
VERDICT_WORDS: Mapping[str, str] = {
    "APPROVED": PASSED,
    "REWRITE": "asks for changes",
    "ERROR": "no verdict",
}
"""What a judge or the rules decided, by the word of the reply format. Only humans approve."""
TO_FIX = "to fix"
"""What a judge decided about a finding that it does not dismiss."""
