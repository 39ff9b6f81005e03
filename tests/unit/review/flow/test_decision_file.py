"""The file of lasting decisions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from signoff.core.errors import UsageError
from signoff.review.flow.decision_file import NAME, add_decisions, read_decisions
from signoff.review.pure.lasting_decision import LastingDecision

DECISION = LastingDecision("0a99eb9001c4", "tone", "It is a slogan.", path="a.md", quote="Never.")


def test_a_decision_is_added_once(tmp_path: Path) -> None:
    add_decisions(tmp_path, [replace(DECISION, on="2026-01-01")])
    text = (tmp_path / NAME).read_text()

    add_decisions(tmp_path, [replace(DECISION, on="2026-01-02")])

    assert (tmp_path / NAME).read_text() == text


def test_an_empty_list_is_added_to(tmp_path: Path) -> None:
    """It broke the file, and with it every later run."""
    (tmp_path / NAME).write_text("# Mine.\nversion: 1\ndecisions: []\n")

    add_decisions(tmp_path, [DECISION])

    assert read_decisions(tmp_path) == [DECISION]
    assert (tmp_path / NAME).read_text().startswith("# Mine.\n")


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\ndecisions:\n- {finding: a, constraint: b, why: c}\n",
        "decisions: []\nversion: 1\n",
    ],
)
def test_a_file_that_cannot_be_added_to_stays_as_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)

    with pytest.raises(UsageError, match="cannot add decisions"):
        add_decisions(tmp_path, [DECISION])

    assert (tmp_path / NAME).read_text() == text
    assert not list(tmp_path.glob(".decisions.yaml*"))
