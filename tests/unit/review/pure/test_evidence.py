import re
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.review.pure.critique import Critique, CritiqueIssue, Overall, quotes_nothing
from signoff.review.pure.evidence import ArtifactText, find_problems, mark_unverified
from tests.tables import table

QUOTES = YAML(typ="safe").load(Path(__file__).with_name("quotes.yaml"))
"""Quotes of the texts here, by what they are examples of."""

ARTIFACT = """# The **Plan**

> We ship on Friday \u2014 unless it\u2019s raining.

- First, read [the manual](https://example.org/a_b).
- Then call `run_all()` and wait ... for it.

He said \u201cno\u201d.\tThat was\nall.
"""


@pytest.mark.parametrize("quote", QUOTES["found"])
def test_a_quote_is_found_whatever_its_typography(quote: str) -> None:
    """A critic that quotes correctly must not be sent back for a space or an asterisk."""
    assert ArtifactText(ARTIFACT).contains(quote)


@pytest.mark.parametrize("quote", QUOTES["not_found"])
def test_a_quote_that_is_not_in_the_artifact_is_not_found(quote: str) -> None:
    """Findings about text that does not exist keep a loop running for nothing."""
    assert not ArtifactText(ARTIFACT).contains(quote)


def test_a_quote_of_nothing_but_signs_counts_if_it_is_there() -> None:
    """In code, a stray sign is a finding."""
    assert ArtifactText("a = 1;;\n").contains(";;")
    assert not ArtifactText("a = 1;\n").contains(";;")


def test_no_quote_is_in_an_empty_artifact() -> None:
    """An empty text satisfies nothing."""
    assert not ArtifactText("").contains("a")


@pytest.mark.parametrize("sign", ["[", "(", "![](", "> ", "#", "*", "\n", ".", '"', "- ", "\ud800"])
def test_hostile_artifacts_are_read_in_time(sign: str) -> None:
    """A regular expression that backtracks would hang the run."""
    start = time.process_time()

    assert not ArtifactText(sign * 100_000).contains("a ... b ... words")

    assert time.process_time() - start < 2


def test_five_hundred_quotes_of_a_large_artifact_are_checked_in_seconds() -> None:
    """The artifact is normalized once, not for every quote."""
    lines = [f"Line {n} of a long report says {n * 7919}." for n in range(50_000)]
    start = time.process_time()
    artifact = ArtifactText("\n".join(lines))

    found = [artifact.contains(lines[n * 100]) for n in range(250)]
    missing = [artifact.contains(f"Line {n} ... says nothing") for n in range(250)]

    assert all(found)
    assert not any(missing)
    assert time.process_time() - start < 5


def issue(name: str, evidence: str, severity: Severity = Severity.LOW) -> CritiqueIssue:
    return CritiqueIssue(name, evidence=evidence, severity=severity)


def reading(overall: Overall, *issues: CritiqueIssue) -> Critique:
    return Critique("tone", "ann", 1, overall, issues)


TEXT = ArtifactText(ARTIFACT)


def test_all_issues_without_evidence_are_reported_at_once_and_marked() -> None:
    """The critic has one chance to fix everything."""
    issues = issue("a", "That was all."), issue("b", "not there"), issue("c", " ")
    critique = reading(Overall.FAIL, *issues, issue("d", "omission: no date"))

    problems = find_problems(critique, TEXT, DEFAULT_BLOCK_ON)
    marked = mark_unverified(critique, problems)

    assert [each.id for each in problems.missing_quotes] == ["b"]
    assert [each.id for each in problems.no_evidence] == ["c"]
    assert [words.split()[0] for words in problems.messages()] == ["the", "c", "copy"]
    assert [each.id for each in marked.issues if each.unverified] == ["b", "c"]
    assert marked.notes == ("not found in the artifact: the evidence of b, c",)


def test_a_sound_critique_has_no_problems_and_stays_as_it_is() -> None:
    """Otherwise it would be paid for twice."""
    critique = reading(Overall.FAIL, issue("a", "That was all.", Severity.HIGH))

    problems = find_problems(critique, TEXT, DEFAULT_BLOCK_ON)

    assert not problems
    assert problems.messages() == []
    assert mark_unverified(critique, problems) is critique


@pytest.mark.parametrize(
    ("overall", "severities", "why"),
    [
        (Overall.PASS, [Severity.LOW, Severity.HIGH], "PASS, but .* x1 \\(HIGH\\)"),
        (Overall.PASS, [Severity.MEDIUM], ""),
        (Overall.PASS, [], ""),
        (Overall.FAIL, [], "FAIL, but"),
        (Overall.FAIL, [Severity.LOW], ""),
    ],
)
def test_a_verdict_is_checked_against_its_issues(
    overall: Overall, severities: list[Severity], why: str
) -> None:
    """Neither a pass with a fault nor a fail without an issue is valid."""
    issues = [issue(f"x{n}", "all", severity) for n, severity in enumerate(severities)]

    problems = find_problems(reading(overall, *issues), TEXT, DEFAULT_BLOCK_ON)

    assert bool(problems) is bool(why)
    assert re.search(why, problems.contradiction)


@pytest.mark.parametrize(
    ("evidence", "omission"),
    [
        ("OMISSION", True),
        (" omission ", True),
        ("OMISSION of the price", True),
        ("Omission: there is no price", True),
        ("Omission (no price)", True),
        ("Omissions excepted.", False),
        ("Omission of facts is a lie.", False),
        ("OMISSIONS EXCEPTED", False),
    ],
)
def test_a_passage_that_begins_with_the_word_is_a_quote(evidence: str, omission: bool) -> None:
    """As an omission it would not be looked up, and a fix of the passage would go unnoticed."""
    assert CritiqueIssue("x-1", evidence=evidence).omission is omission
    assert quotes_nothing(evidence) is omission


QUOTED = (
    "# The **Plan**\r\n"
    "\r\n"
    "We ship on Friday, unless it\u2019s raining\r\n"
    "or the *build* is red; nobody can\u2019t wait.\r\n"
    "\r\n"
    "1. Open the caf\u00e9 door.\r\n"
    "2. Brew 50 cups for the office\r\n"
    "3. Close it, not later than 17:30.\r\n"
    "\r\n"
    "- Keep the \ufb01le_name short\r\n"
    "- Do not share it\r\n"
    "  * [ ] Ask [Ann](https://example.org/ann) first\r\n"
    "\r\n"
    "| Name | Cups |\r\n"
    "|------|-----:|\r\n"
    "| Bob  | 1.5  |\r\n"
    "\r\n"
    "> The price is 1,000\u00a0euros \u2014 non-refundable.\r\n"
    "> It covers 10\u00b2 cups.\r\n"
    "\r\n"
    "An inter-\r\nnational co\u00adoperation of well-\r\nknown people. Cost: -5 points.\r\n"
    "\u6211\u4eec\u5728*\u661f\u671f\u4e94*\u53d1\u5e03\u3002\r\n"
)
CODE = """def total(items: list[int], a_b: int) -> int:
    x = -1
    if a_b >= 10 and items[0] != x:
        return a_b * 2 ** 3 - x
    first = a_b - x
    pattern = r"\\d+"
    Item = item(x)
    return first + 2*3
"""


@table(("quote", "lines"), QUOTES["at_lines"])
def test_a_quote_is_found_at_its_lines_the_way_people_quote(quote: str, lines: list[Any]) -> None:
    """Each quote that is not found costs a call, and then the finding."""
    lines = [tuple(each) for each in lines]
    assert ArtifactText(QUOTED).lines_of(quote) == lines
    assert ArtifactText(unicodedata.normalize("NFD", QUOTED)).lines_of(quote) == lines
    assert ArtifactText(QUOTED.replace("\r\n", "\n")).lines_of(quote) == lines


@table("quote", QUOTES["invented"])
def test_an_invented_quote_is_caught(quote: str) -> None:
    """A finding about text that does not exist keeps a loop running for nothing."""
    assert not ArtifactText(QUOTED).contains(quote)


@table(("quote", "found"), QUOTES["in_code"])
def test_operators_and_names_of_code_are_compared(quote: str, found: bool) -> None:
    """In code, one sign changes everything."""
    assert ArtifactText(CODE).contains(quote) is found
    assert ArtifactText(CODE.replace("\n", "\r\n")).contains(quote) is found


def test_of_two_passages_the_exact_one_is_meant() -> None:
    """The change that fixes a finding is recognized by its lines."""
    artifact = ArtifactText("so we ship now\nWe ship now, yes\nWe ship now.\n")

    assert artifact.lines_of("we ship now") == [(0, 0)]
    assert artifact.lines_of("We ship now") == [(1, 1)]
    assert artifact.lines_of("We ship now.") == [(2, 2)]
    assert artifact.lines_of("We ship now;") == [(0, 0)]


def test_signs_are_found_on_their_line() -> None:
    """In code, a stray sign is a finding with a line."""
    artifact = ArtifactText("a = 1\nb = 2;;\n")

    assert artifact.lines_of(";;") == [(1, 1)]
    assert artifact.lines_of("**") == []


def test_an_invisible_sign_between_a_letter_and_its_accent_does_not_matter() -> None:
    """Text that is copied from a page has soft hyphens in odd places."""
    assert ArtifactText("\u00c5land").contains("A\u00ad\u030a\u00adland")
