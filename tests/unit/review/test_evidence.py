import re
import time
import unicodedata

import pytest

from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.review.critique import Critique, CritiqueIssue, Overall, quotes_nothing
from signoff.review.evidence import ArtifactText, find_problems, mark_unverified
from tests.tables import table

ARTIFACT = """# The **Plan**

> We ship on Friday \u2014 unless it\u2019s raining.

- First, read [the manual](https://example.org/a_b).
- Then call `run_all()` and wait ... for it.

He said \u201cno\u201d.\tThat was\nall.
"""


@pytest.mark.parametrize(
    "quote",
    [
        "We ship on Friday",
        "We ship on Friday - unless it's raining.",
        "We ship   on\nFriday",
        "The Plan",
        "# The **Plan**",
        "read the manual. Then call",
        "read [the manual](https://example.org/a_b)",
        "First, read the manual.\n- Then call run_all()",
        "- First, read the manual. - Then call `run_all()`",
        'He said "no". That was all.',
        '"That was all."',
        "We ship on Friday ... raining",
        "We ship on Friday [...] That was all.",
        "We ship on Friday \u2026 He said \u2026",
        "wait ... for it",
        "no",
    ],
)
def test_a_quote_is_found_whatever_its_typography(quote: str) -> None:
    """A critic that quotes correctly must not be sent back for a space or an asterisk."""
    assert ArtifactText(ARTIFACT).contains(quote)


@pytest.mark.parametrize(
    "quote",
    [
        "We ship on Monday",
        "we ship on friday",
        "That was all. ... We ship on Friday",
        "no ... all",
        "We ship on Friday ... on Monday",
        "",
        "...",
        "***",
        "\0",
        '""',
    ],
)
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


@table(
    ("quote", "lines"),
    [
        # Unicode form and typography
        ("Open the cafe\u0301 door", [(5, 5)]),
        ("Open the \uff43\uff41\uff46\u00e9 door", [(5, 5)]),
        ("Keep the file_name short", [(9, 9)]),
        ("Keep the \ufb01le_name short", [(9, 9)]),
        ("unless it's raining", [(2, 2)]),
        ("unless it\u00b4s raining", [(2, 2)]),
        ("1,000 euros - non-refundable", [(17, 17)]),
        ("1,000\u202feuros \u2013 non\u2011refundable", [(17, 17)]),
        ("It covers 10\u00b2 cups", [(18, 18)]),
        ("cooperation of", [(21, 21)]),
        ("We\u200b ship\ufeff on Friday", [(2, 2)]),
        ("\u6211\u4eec\u5728\u661f\u671f\u4e94\u53d1\u5e03", [(23, 23)]),
        ("\u661f\u671f\u4e94", [(23, 23)]),
        # the first letter
        ("Unless it's raining", [(2, 2)]),
        ("we ship on Friday", [(2, 2)]),
        ("Nobody can't wait", [(3, 3)]),
        ("brew 50 cups", [(6, 6)]),
        ("We ship ... The build is red", [(2, 2), (3, 3)]),
        # the punctuation at the end
        ("We ship on Friday.", [(2, 2)]),
        ("We ship on Friday;", [(2, 2)]),
        ("We ship on Friday:", [(2, 2)]),
        ("We ship on Friday...", [(2, 2)]),
        ("We ship on Friday\u2026", [(2, 2)]),
        ("Brew 50 cups for the office.", [(6, 6)]),
        ("Open the caf\u00e9 door", [(5, 5)]),
        ("\u201cNobody can\u2019t wait,\u201d", [(3, 3)]),
        ('"we ship on Friday".', [(2, 2)]),
        ("Red.", []),
        ("red.", [(3, 3)]),
        # line breaks
        ("raining or the build", [(2, 3)]),
        ("raining\nor the build", [(2, 3)]),
        ("raining\r\nor the build", [(2, 3)]),
        ("raining\ror the build", [(2, 3)]),
        ("raining\\nor the build", [(2, 3)]),
        ("We ship\non\nFriday", [(2, 2)]),
        ("inter- national", [(20, 21)]),
        # the marks of lists, headings, tables and quotations
        ("1. Open the caf\u00e9 door. 2. Brew 50 cups", [(5, 6)]),
        ("1. Open the caf\u00e9 door.\n2. Brew 50 cups", [(5, 6)]),
        ("Open the caf\u00e9 door. Brew 50 cups", [(5, 6)]),
        ("Open the caf\u00e9 door.\nBrew 50 cups", [(5, 6)]),
        ("- Open the caf\u00e9 door.\n- Brew 50 cups", [(5, 6)]),
        ("Brew 50 cups for the office 3. Close it", [(6, 7)]),
        ("Brew 50 cups for the office. 3. Close it", []),
        ("Keep the file_name short Do not share it", [(9, 10)]),
        ("* Keep the file_name short\n* Do not share it", [(9, 10)]),
        ("\u2022 Keep the file_name short \u2022 Do not share it", [(9, 10)]),
        ("- Do not share it", [(10, 10)]),
        ("Do not share it [ ] Ask Ann first", [(10, 11)]),
        ("The Plan We ship on Friday", [(0, 2)]),
        ("## The Plan\nWe ship", [(0, 2)]),
        ("Name Cups Bob 1.5", [(13, 15)]),
        ("| Name | Cups |\n|---|---|\n| Bob | 1.5 |", [(13, 15)]),
        ("Bob | 1.5", [(15, 15)]),
        ("non-refundable. It covers", [(17, 18)]),
        ("> It covers", [(18, 18)]),
        ("_We_ ship on __Friday__", [(2, 2)]),
        ("the **build** is `red`", [(3, 3)]),
    ],
)
def test_a_quote_is_found_at_its_lines_the_way_people_quote(
    quote: str, lines: list[tuple[int, int]]
) -> None:
    """Each quote that is not found costs a call, and then the finding."""
    assert ArtifactText(QUOTED).lines_of(quote) == lines
    assert ArtifactText(unicodedata.normalize("NFD", QUOTED)).lines_of(quote) == lines
    assert ArtifactText(QUOTED.replace("\r\n", "\n")).lines_of(quote) == lines


@table(
    "quote",
    [
        # other words
        "We ship on Monday",
        "We shipped on Friday",
        "We ship on on Friday",
        "We ship Friday",
        "on Friday We ship",
        "They ship on Friday",
        "We ship on Friday, unless it snows",
        "We never ship on Friday",
        "Thr build is red",
        # negations
        "Do share it",
        "Don't share it",
        "nobody can",
        "somebody can't wait",
        "Close it, later than 17:30",
        "refundable",
        # case beyond the first letter, and of single words
        "we Ship on Friday",
        "We ship on friday",
        "WE SHIP ON FRIDAY",
        "friday",
        "the Build is red",
        # numbers
        "Brew 5",
        "Brew 500 cups",
        "0 cups for the office",
        "Brew 60 cups",
        "than 17:3",
        "The price is 1",
        "The price is 1.",
        "The price is 1,00",
        "The price is 1.000 euros",
        "000 euros",
        "Bob 15",
        "Bob 1",
        "5 points",
        "It covers 102 cups",
        "4. Close it",
        "1. Open the caf\u00e9 door. 3. Brew 50 cups",
        "Open the caf\u00e9 door. 7. Brew 50 cups",
        # parts of words
        "Op",
        "pen the caf\u00e9 door",
        "Open the caf",
        "Open the cafe door",
        "e",
        "Keep the filename short",
        "Keep the file name short",
        # order and distance
        "Brew 50 cups ... We ship on Friday",
        "We ship ... on Monday",
        "We ... it",
        "Name Bob Cups",
        # other signs
        "nobody can't wait!",
        "nobody can't wait?",
        "We ship on Friday - unless",
        "We ship - on Friday",
        "We ship > on Friday",
        "We ship 2. on Friday",
        "The Plan: We ship",
        # nothing
        "",
        " ",
        ".",
        "...",
        "- ",
        "**",
        "\u6211\u4eec\u5728\u661f\u671f\u516d\u53d1\u5e03",
    ],
)
def test_an_invented_quote_is_caught(quote: str) -> None:
    """A finding about text that does not exist keeps a loop running for nothing."""
    assert not ArtifactText(QUOTED).contains(quote)


@table(
    ("quote", "found"),
    [
        ("x = -1", True),
        ("x = 1", False),
        ("= -1", True),
        ("1", False),
        ("a_b", True),
        ("ab", False),
        ("a_b >= 10", True),
        ("a_b > 10", False),
        ("a_b <= 10", False),
        ("a_b >= 1", False),
        ("ab >= 10", False),
        ("items[0] != x", True),
        ("items[0] == x", False),
        ("items[1] != x", False),
        ("a_b - x", True),
        ("a_b x", False),
        ("a_b + x", False),
        ("a_b * x", False),
        ("return a_b * 2 ** 3 - x", True),
        ("return a_b - 2 ** 3 - x", False),
        ("first + 2*3", True),
        ("first + 23", False),
        ("first - 2*3", False),
        ('r"\\d+"', True),
        ('r"d+"', False),
        ("Item = item(x)", True),
        ("Item", True),
        ("return Item", False),
        ("Total", False),
        ("x = -1\n    if a_b >= 10", True),
        ("x = -1 if a_b >= 10", True),
        ("-> int:", True),
        ("=> int:", False),
    ],
)
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
