"""Tests of HTML that is safe by construction."""

import pytest

from signoff.views.pages.html import Markup, join, tag


def test_texts_and_attributes_are_escaped() -> None:
    """A model's text must never become a part of the page."""
    made = tag("a", "<b>&", href='"><script>')

    assert made == '<a href="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;</a>'


def test_elements_are_not_escaped_twice() -> None:
    """Pages are built of parts."""
    assert tag("p", tag("b", "1 < 2"), ["!", None, 3]) == "<p><b>1 &lt; 2</b>!3</p>"


def test_elements_without_content_are_closed() -> None:
    """An open `rect` would contain all that follows it."""
    assert tag("rect", x=1, class_="a", hidden=False, rx=None) == '<rect x="1" class="a"/>'


@pytest.mark.parametrize("sign", ["\x00", "\x1b", "\u202e", "\u2066", "\ud800"])
def test_characters_that_browsers_interpret_are_shown_as_escapes(sign: str) -> None:
    """A bidirectional override could turn a decision into its opposite."""
    made = join([f"a{sign}b"])

    assert sign not in made
    assert f"\\u{ord(sign):04x}" in made
    assert isinstance(made, Markup)
