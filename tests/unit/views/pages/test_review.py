"""Findings, changes between versions, and diffs as HTML."""

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.review.pure.diff import DiffHunk, label_key
from signoff.review.pure.finding import Finding
from signoff.review.pure.history import ReviewHistory, Version
from signoff.views.pages import review as pages
from signoff.views.pages.html import join

DIFF = "--- a/g.md\n+++ b/g.md\n@@ -1,2 +1,2 @@\n-loud\n+calm\n end\n"


def finding(name: str, quote: str, path: str = "", status: str = "open") -> Finding:
    return Finding(
        name, "tone", "", Severity.HIGH, quote, "", f"About {name}.",
        status=FindingStatus(status), path=path, first=1, last=1,
    )  # fmt: skip


def review(path: str, *texts: str, at: int = 1, **findings: Finding) -> ReviewHistory:
    """A review whose findings are answered by the change of one line."""
    labels = {label_key(path, f"@@ -{at} +{at} @@"): tuple(findings)}
    versions = tuple(
        Version(number, number, "fix", "refine", {path: text}, labels=labels if number > 1 else {})
        for number, text in enumerate(texts, 1)
    )
    return ReviewHistory(versions=versions, findings=tuple(findings.values()))


def request(**shown: str) -> dict[str, object]:
    return {"run": "run", "shown": shown}


def test_a_text_has_its_evidence_marked() -> None:
    """The approver sees at once where the open findings are."""
    history = review("", "a loud sea", f1=finding("f1", "loud"))

    better = pages.shown_better(request(artifact="a loud sea", cost="$1"), history)

    assert list(better) == ["artifact"]
    assert 'a <mark id="m-f1"><a href="#f-f1"' in better["artifact"]
    assert "About f1." in pages.review_context("run", history)


def test_a_diff_has_the_findings_that_each_hunk_answers() -> None:
    """That is what an approver has to know about every change."""
    history = review(
        "g.md", "loud\nend\n", "calm\nend\n", f1=finding("f1", "loud", "g.md", "fixed")
    )

    context = pages.review_context("run", history)

    assert 'answers <a href="/runs/run/findings#f-f1">tone f1</a>' in context
    assert "1 fixed of 1 finding" in context


def test_what_differs_from_the_request_is_not_shown_in_its_place() -> None:
    """An answer is bound to what the request shows, so exactly that has to be on the screen."""
    history = review("g.md", "loud\nend\n", "calm\nEND\n")

    assert pages.shown_better(request(changes=DIFF, artifact="calm\nend\n"), history) == {}
    assert pages.shown_better(request(changes=DIFF), ReviewHistory()) == {}


TEXTS = ("one\ntwo\nthree\n", "one\n2\nthree\n", "one\n2\nthree!\n")
HISTORY = review("", *TEXTS, at=2, f1=finding("f1", "two"))


def made(first: int | None = None, last: int | None = None) -> str:
    return join(pages.changes_html(HISTORY, "run", first, last))


def test_any_two_versions_can_be_compared() -> None:
    """A reader who was away wants to see everything since the first version."""
    latest, whole = made(), made(1, 3)

    assert "three<ins>!</ins>" in latest
    assert "two" not in latest
    assert "two" in whole
    assert "three<ins>!</ins>" in whole


def test_hunks_name_the_findings_they_answer() -> None:
    """That is the question a reviewer has about every change."""
    assert 'answers <a href="#f-f1">tone f1</a>' in made(1, 2)
    assert "answers no finding" in made(2, 3)


def test_versions_that_do_not_exist_fall_back_to_the_latest() -> None:
    """An old link must not break the page."""
    assert made(99, -1) == made()
    assert made(3, 1) == made(1, 3)
    assert "only one version" in join(pages.changes_html(ReviewHistory(), "run", None, None))


def test_the_words_that_changed_are_marked_in_their_lines() -> None:
    """In a long line, readers look for the one word that is new."""
    hunk = DiffHunk("@@ -1 +1 @@", (" <a>", "-the see is wide", "+the sea is wide"), ("gone",))

    made = pages.hunk_html(hunk, {})

    assert '<span class="del">-the <del>see </del>is wide</span>' in made
    assert '<span class="add">+the <ins>sea </ins>is wide</span>' in made
    assert "<span> &lt;a&gt;</span>" in made
    assert "answers gone" in made


def test_lines_without_a_counterpart_are_shown_whole() -> None:
    """An added paragraph has no old words to compare with."""
    made = pages.hunk_html(DiffHunk("@@ -1,0 +1,2 @@", ("+one", "+two")), {})

    assert '<span class="add">+one</span><span class="add">+two</span>' in made
    assert "answers no finding" in made


def test_very_long_lines_are_not_compared_word_by_word() -> None:
    """A minified file would take seconds."""
    long = "word " * (pages.MOST_WORDS + 1)

    made = pages.hunk_html(DiffHunk("@@ -1 +1 @@", (f"-{long}", f"+{long}x")), {})

    assert "<ins>" not in made


def test_every_line_of_a_unified_diff_is_shown_whatever_it_looks_like() -> None:
    """A removed line that begins with two dashes looks like the header of a file."""
    diff = (
        "--- a/x.md\n+++ b/x.md\n@@ -1,3 +1,3 @@\n one\n--- rm -rf\n+++ <b>\n three\n"
        "--- a/y.md\n+++ b/y.md\n@@ -1 +1 @@\n-old\n\\ No newline at end of file\n+new\n"
    )

    made = pages.unified_html(diff)

    assert '<span class="mono">x.md</span>' in made
    assert '<span class="mono">y.md</span>' in made
    assert "rm -rf" in made
    assert "&lt;b&gt;" in made
