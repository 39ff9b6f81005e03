"""Which quotes count: what people change when they quote, and what they must not change."""

import unicodedata

from signoff.review.evidence import ArtifactText
from tests.tables import table

TEXT = (
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
    assert ArtifactText(TEXT).lines_of(quote) == lines
    assert ArtifactText(unicodedata.normalize("NFD", TEXT)).lines_of(quote) == lines
    assert ArtifactText(TEXT.replace("\r\n", "\n")).lines_of(quote) == lines


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
    assert not ArtifactText(TEXT).contains(quote)


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
