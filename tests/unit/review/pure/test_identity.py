import pytest

from signoff.core.severity import Severity
from signoff.review.pure.critique import Critique, CritiqueIssue, Overall
from signoff.review.pure.identity import find_passages


def identify(critiques: list[Critique], artifact: str) -> list[list[str]]:
    return [[each.id for each in ids] for ids in find_passages([], critiques, artifact)]


def test_ids_depend_only_on_the_content() -> None:
    """A run on another machine, or after a restart, must give its findings the same ids."""
    issues = (
        CritiqueIssue("c-1", "R-1", Severity.HIGH, "Top", "wrong", "a *quote*"),
        CritiqueIssue("c-2", "r-1 ", Severity.LOW, "End", "wrong", "A quote"),
        CritiqueIssue("c-3", "r-1", Severity.HIGH, "Top", "missing", "OMISSION"),
    )
    critique = Critique("c", "claude", 1, Overall.FAIL, issues)

    (named,) = identify([critique], "a quote")

    assert named == ["976337178c79", "976337178c79", "c4f2260efdc1"]


def test_no_issues_have_no_ids() -> None:
    """A clean critique is the good case."""
    assert identify([Critique("c", "claude", 1, Overall.PASS)], "text") == [[]]


@pytest.mark.parametrize(
    "quote",
    [
        "Open the caf\u00e9 door",
        "open the cafe\u0301 door.",
        "1. Open the caf\u00e9 door",
        "- Open  the\r\ncaf\u00e9 door;",
        "\u201cOpen the caf\u00e9 door\u201d",
        "> **Open** the\u00a0caf\u00e9 door\u2026",
    ],
)
def test_a_passage_that_is_quoted_differently_is_the_same_finding(quote: str) -> None:
    """Two critics that report one problem must not look like two problems."""
    artifact = "1. Open the caf\u00e9 door.\n2. Open the caf\u00e9 floor.\n"
    issues = [
        CritiqueIssue(f"c-{n}", "r-1", Severity.HIGH, "", f"in words {n}", evidence)
        for n, evidence in enumerate(["Open the caf\u00e9 floor", "Open the caf\u00e9 door."])
    ]
    reworded = CritiqueIssue("c-9", "r-1", Severity.HIGH, "", "said otherwise", quote)
    first = Critique("c", "ann", 1, Overall.FAIL, tuple(issues))
    second = Critique("c", "bob", 1, Overall.FAIL, (reworded,))

    (floor, door), (same,) = identify([first, second], artifact)

    assert same == door != floor


@pytest.mark.parametrize(("shared", "same"), [(60, True), (59, False)])
def test_a_misquote_is_the_passage_if_it_is_similar_enough(shared: int, same: bool) -> None:
    """Sixty percent: with less, a critic that invents quotes would merge different findings."""
    passage = "x" * shared + "y" * (100 - shared)
    invented = "x" * shared + "z" * (100 - shared)
    true = CritiqueIssue("c-1", "r-1", Severity.HIGH, "", "wrong", passage)
    misquote = CritiqueIssue("c-2", "r-1", Severity.HIGH, "", "bad", invented, unverified=True)
    critiques = [
        Critique("c", "ann", 1, Overall.FAIL, (true,)),
        Critique("c", "bob", 1, Overall.FAIL, (misquote,)),
    ]

    (first,), (second,) = identify(critiques, passage)

    assert (first == second) is same
