"""Which files and constraints a flow's run has not read."""

from __future__ import annotations

from typing import Any

from signoff.review.flow.coverage import run_coverage


def description(*constraints: dict[str, Any], patterns: list[str] | None = None) -> dict[str, Any]:
    steps = [{"step": "critique", "constraints": patterns}]
    return {"source": {"flow": {"workflow": steps}, "constraints": list(constraints)}}


def unread(readings: list[str], *paths: str, **more: Any) -> list[tuple[str, str]]:
    about = description({"id": "tone"}, {"id": "code", "paths": ["*.py"]}, **more)
    found = run_coverage({"readings": dict.fromkeys(readings, "x")}, about, paths)
    return [(each.path, each.reason.rpartition(" ")[2]) for each in found.missed]


def test_each_file_is_read_against_each_constraint_that_is_about_it() -> None:
    readings = ["tone/claude/a.md", "tone/claude/x/b.py", "code/claude/x/b.py"]

    assert unread(readings, "a.md", "x/b.py") == []
    assert unread(readings, "b.py") == [("b.py", "tone"), ("b.py", "code")]


def test_a_constraint_that_no_step_selects_is_not_missed() -> None:
    assert unread([], "b.py", patterns=["to*"]) == [("b.py", "tone")]


def test_a_text_without_a_name_is_read_as_a_whole() -> None:
    assert unread(["tone/claude", "code/ruff"], "") == []
    assert unread(["tone/claude"], "") == [("the text", "code")]


def test_a_constraint_that_is_left_out_is_named() -> None:
    found = run_coverage({"unchecked": {"tests": "why"}}, description(), [])

    assert [(each.path, each.reason) for each in found.left_out] == [("constraint tests", "why")]
