"""Files as critics see them, and issues that name a file."""

from __future__ import annotations

from typing import Any

import pytest

from signoff.review.pure.artifact import ArtifactVersion
from signoff.review.pure.critique import Critique, CritiqueIssue, Overall
from signoff.review.pure.policy import IssueContext, apply_issue_rules
from signoff.review.pure.review_scope import NOT_CHANGED, assign_files, diff_text, show_files

FILES = {"a.md": "One.\nTwo words.\n", "b.md": "One.\nThree small words.\n"}
VERSION = ArtifactVersion(FILES)


def critique(**issue: Any) -> Critique:
    found = CritiqueIssue("tone-001", finding="Wrong.", **issue)
    return Critique("tone", "claude", 1, Overall.FAIL, (found,))


def assigned(base: dict[str, str] | None = None, **issue: Any) -> tuple[CritiqueIssue, list[str]]:
    shown = show_files(FILES, base or {}, list(FILES))
    result, problems = assign_files(critique(**issue), shown, VERSION)
    return result.issues[0], problems


@pytest.mark.parametrize("name", ["a.md", "./a.md", " a.md "])
def test_an_issue_is_about_the_file_it_names(name: str) -> None:
    issue, problems = assigned(path=name, evidence="Two words.")

    assert (issue.path, problems) == ("a.md", [])


def test_an_issue_without_a_file_is_about_the_only_one_with_its_quote() -> None:
    issue, problems = assigned(evidence="Three small words.")

    assert (issue.path, problems) == ("b.md", [])


@pytest.mark.parametrize("path", ["", "c.md", "../a.md", "/etc/passwd"])
def test_a_file_that_was_not_given_or_is_unclear_is_sent_back_and_stays_unverified(
    path: str,
) -> None:
    issue, problems = assigned(path=path, evidence="One.")

    assert (issue.path, issue.unverified) == ("", True)
    assert problems[-1] == "`path` must be one of: a.md, b.md"


def test_the_marks_of_a_diff_are_not_part_of_a_quote() -> None:
    issue, problems = assigned({"a.md": "One.\n"}, path="a.md", evidence="+Two words.")

    assert (issue.evidence, problems) == ("Two words.", [])


def test_a_changed_file_is_shown_with_its_old_lines_and_a_new_one_as_it_is() -> None:
    changed, new = show_files(FILES, {"a.md": "One.\nOld words.\n", "b.md": ""}, list(FILES))

    assert (changed.diff, changed.text.splitlines()) == (
        True,
        ["@@ -1,2 +1,2 @@", " One.", "-Old words.", "+Two words."],
    )
    assert (new.diff, new.text) == (False, FILES["b.md"])


def test_distant_changes_are_hunks_of_their_own() -> None:
    lines = [f"line {n}\n" for n in range(100)]
    changed = ["first\n", *lines[1:-1], "last\n"]

    shown = diff_text("".join(lines), "".join(changed)).splitlines()

    headers = [line for line in shown if line.startswith("@@")]
    assert headers == ["@@ -1,13 +1,13 @@", "@@ -88,13 +88,13 @@"]
    assert len(shown) == 2 * (1 + 2 + 12)


@pytest.mark.parametrize(
    ("quote", "why"),
    [
        ("Two words.", ""),
        ("One.", NOT_CHANGED),
        ("OMISSION", ""),
        ("One.\nTwo words.", ""),
    ],
)
def test_only_findings_on_changed_lines_count_in_a_review_of_changes(quote: str, why: str) -> None:
    found = critique(path="a.md", evidence=quote)

    result = apply_issue_rules(found, IssueContext(VERSION, {"a.md": "One.\nOld words.\n"}))

    assert result.issues[0].set_aside == why


@pytest.mark.parametrize(("line", "why"), [(1, NOT_CHANGED), (3, "")])
def test_of_equal_passages_the_one_on_a_changed_line_counts(line: int, why: str) -> None:
    version = ArtifactVersion({"a.md": "same words\nmiddle\nsame words\n"})
    found = critique(path="a.md", evidence="same words", line=line)

    result = apply_issue_rules(found, IssueContext(version, {"a.md": "same words\nmiddle\n"}))

    assert result.issues[0].set_aside == why


def test_a_finding_next_to_removed_lines_counts() -> None:
    version = ArtifactVersion({"a.md": "check(x)\nuse(x)\n"})

    about = IssueContext(version, {"a.md": "check(x)\nguard(x)\nuse(x)\n"})
    result = apply_issue_rules(critique(path="a.md", evidence="use(x)"), about)

    assert result.issues[0].set_aside == ""
