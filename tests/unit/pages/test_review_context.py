"""Tests of what a request about a review shows better than as plain text."""

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.pages.review import review_context, shown_better
from signoff.review.diff import label_key
from signoff.review.finding import Finding
from signoff.review.history import ReviewHistory, Version

DIFF = "--- a/g.md\n+++ b/g.md\n@@ -1,2 +1,2 @@\n-loud\n+calm\n end\n"


def finding(name: str, quote: str, path: str = "", status: str = "open") -> Finding:
    return Finding(
        name, "tone", "", Severity.HIGH, quote, "", f"About {name}.",
        status=FindingStatus(status), path=path, first=1, last=1,
    )  # fmt: skip


def review(path: str, *texts: str, **findings: Finding) -> ReviewHistory:
    labels = {label_key(path, "@@ -1 +1 @@"): tuple(findings)}
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

    better = shown_better(request(artifact="a loud sea", cost="$1"), history)

    assert list(better) == ["artifact"]
    assert 'a <mark id="m-f1"><a href="#f-f1"' in better["artifact"]
    assert "About f1." in review_context("run", history)


def test_a_diff_has_the_findings_that_each_hunk_answers() -> None:
    """That is what an approver has to know about every change."""
    history = review(
        "g.md", "loud\nend\n", "calm\nend\n", f1=finding("f1", "loud", "g.md", "fixed")
    )

    better = shown_better(request(changes=DIFF), history)

    assert 'answers <a href="/runs/run/findings#f-f1">tone f1</a>' in better["changes"]
    assert "1 fixed of 1 finding" in review_context("run", history)


def test_what_differs_from_the_request_is_not_shown_in_its_place() -> None:
    """An answer is bound to what the request shows, so exactly that has to be on the screen."""
    history = review("g.md", "loud\nend\n", "calm\nEND\n")

    assert shown_better(request(changes=DIFF, artifact="calm\nend\n"), history) == {}
    assert shown_better(request(changes=DIFF), ReviewHistory()) == {}
