"""Tests of the files that show open requests."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from signoff.core.requests import ItemState, RequestKind
from signoff.runtime.store_port import InboxItem
from signoff.views.run_directory.answers import question_files


def asked(form: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entry of a request in `questions.json`."""
    item = InboxItem(
        7, "one", "ask!person", RequestKind.RESPONSE, "You review.", json.dumps(form), "d" * 64,
        "review", 0.0, None, ItemState.OPEN, None, None, None,
    )  # fmt: skip
    files = question_files([item], {item.id: form}, 1)
    (group,) = json.loads(files["questions.json"])["questions"]
    (question,) = group["questions"]
    return dict(question)


@pytest.mark.parametrize(
    ("form", "title"),
    [
        ({"about": {"title": "Review against 'short'"}}, "Review against 'short'"),
        ({"about": {"step": "review"}}, None),
        ({}, None),
    ],
)
def test_a_title_is_shown(form: dict[str, Any], title: str | None) -> None:
    """Ten prompts that begin with the same words look the same in a list."""
    assert asked(form).get("title") == title


def test_a_file_that_may_be_edited_is_named() -> None:
    """A program that answers by file has to know which one it may edit."""
    entry = asked({"path": "plan.md", "edits": "accept"})

    assert (entry["path"], entry["edits"]) == ("plan.md", "accept")
