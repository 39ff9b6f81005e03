"""Quotes of generated artifacts, changed the way people change them."""

import unicodedata
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from signoff.review.pure.evidence import ArtifactText

WORDS = st.sampled_from(
    (
        "We ship caf\u00e9 na\u00efve \ufb01nd it\u2019s \u201cno\u201d 5 50 1.5 -3 a_b x() x=1 "
        "non-stop \u00c5land (maybe) end. stop, wait; so: *bold* `code` \uff21\uff22 "
        "\u03b1\u03b2 \u0434\u0430 2*3 a-b - 7. R&D 100%"
    ).split()
)
MARKS = st.sampled_from(["", "- ", "* ", "1. ", "12) ", "# ", "> ", "  "])
LINES = st.lists(st.tuples(MARKS, st.lists(WORDS, min_size=1, max_size=8)), min_size=1, max_size=8)
CHANGES: list[Callable[[str], str]] = [
    lambda text: unicodedata.normalize("NFC", text),
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: unicodedata.normalize("NFKC", text),
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", " "),
    lambda text: text.replace(" ", "\n"),
    lambda text: text.replace(" ", "\u00a0"),
    lambda text: text.replace("\u2019", "'").replace("\u201c", '"').replace("\u201d", '"'),
    lambda text: text.replace("*bold*", "bold").replace("`", ""),
    "\u00ad".join,
    lambda text: f"\u201c{text}\u201d",
    lambda text: f"\u2026 {text} \u2026",
    lambda text: text[:1].swapcase() + text[1:] if " " in text else text,
    lambda text: text.rstrip(" .,;:"),
    lambda text: text + ".",
]


@given(lines=LINES, data=st.data())
def test_a_passage_is_found_however_it_is_wrapped_and_encoded(
    lines: list[tuple[str, list[str]]], data: st.DataObject
) -> None:
    """A critic that quotes correctly is never sent back."""
    artifact = "\n".join(mark + " ".join(words) for mark, words in lines)
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    quote = "\n".join(mark + " ".join(words) for mark, words in lines[first : last + 1])

    for change in data.draw(st.lists(st.sampled_from(CHANGES), max_size=3, unique=True)):
        quote = change(quote)

    if any(map(str.isalnum, quote)):
        assert ArtifactText(artifact).contains(quote)
        assert ArtifactText(artifact.replace("\n", "\r\n")).contains(quote)


@given(lines=LINES, data=st.data())
def test_a_passage_without_its_list_marks_is_found_at_its_lines(
    lines: list[tuple[str, list[str]]], data: st.DataObject
) -> None:
    """Marks are layout; the lines tie a change to its finding."""
    numbered = [(mark, [f"w{n}", *words, f"v{n}"]) for n, (mark, words) in enumerate(lines)]
    artifact = "\n".join(mark + " ".join(words) for mark, words in numbered)
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))

    quote = " ".join(" ".join(words) for _, words in numbered[first : last + 1])

    assert ArtifactText(artifact).lines_of(quote) == [(first, last)]


@given(lines=LINES, data=st.data())
def test_a_passage_with_another_word_is_not_found(
    lines: list[tuple[str, list[str]]], data: st.DataObject
) -> None:
    """An invented word is an invented quote."""
    artifact = "\n".join(mark + " ".join(words) for mark, words in lines)
    words = data.draw(st.sampled_from(lines))[1]
    changed = data.draw(st.integers(0, len(words) - 1))

    quote = " ".join([*words[:changed], "other", *words[changed + 1 :]])
    for change in data.draw(st.lists(st.sampled_from(CHANGES), max_size=3, unique=True)):
        quote = change(quote)

    assert not ArtifactText(artifact).contains(quote)
