"""Markdown as HTML without active content.

Texts of models are hostile, so nothing of a parser's own HTML is used: it returns tokens, and each
token becomes an element through `tag`, which escapes its text. A token that is not listed here is
shown as text. Nothing is ever fetched: an image becomes its description and its address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from signoff.views.pages.html import Content, Markup, join, tag
from signoff.views.pages.review import MOST_TEXT

if TYPE_CHECKING:
    from markdown_it.token import Token

MOST_MARKDOWN = 100_000
"""Characters of a text that is rendered; a longer one is shown as it was written."""
DEEPEST = 60
"""Levels of lists and quotations that are rendered."""
SUFFIXES = (".md", ".markdown")

_SCHEMES = frozenset({"http", "https", "mailto"})
_HEADINGS = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6", "h6": "h6"}
"""The headings of a text are below those of the page that shows it."""
_ELEMENTS = frozenset({
    "p", "blockquote", "ul", "ol", "li", "em", "strong", "s",
    "table", "thead", "tbody", "tr", "th", "td", *_HEADINGS,
})  # fmt: skip


def is_markdown(path: str) -> bool:
    """Tells whether a file is Markdown; a text without a name may be."""
    return not path or path.lower().endswith(SUFFIXES)


def markdown_html(text: str) -> Markup:
    """Returns a text as HTML; one that is too long, as it was written."""
    if len(text) > MOST_MARKDOWN:
        return _source(text, "The text is too long to be rendered.")
    from markdown_it import MarkdownIt

    options = {"html": False, "linkify": False, "maxNesting": DEEPEST}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    tokens = parser.parse(text)
    if any(token.level >= DEEPEST - 1 for token in tokens):
        # The parser leaves out what is nested deeper, and a reader would not know.
        return _source(text, "The text is nested too deep to be rendered.")
    return tag("div", _Builder(tokens).contents(), class_="rendered")


def _source(text: str, why: str) -> Markup:
    shown = text[:MOST_TEXT]
    rest = f" Its first {len(shown):,} characters follow." if len(shown) < len(text) else ""
    return join([tag("p", f"{why} This is its source.{rest}", class_="notice"), tag("pre", shown)])


class _Builder:
    """Turns the flat list of tokens into nested elements."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = iter(tokens)

    def contents(self) -> Content:
        """Returns the elements up to the end of the one that is open."""
        found: list[Content] = []
        for token in self._tokens:
            if token.nesting < 0:
                break
            found.append(self._open(token) if token.nesting else _single(token))
        return found

    def _open(self, token: Token) -> Content:
        inside = self.contents()
        if token.type == "link_open":
            return _link(str(token.attrs.get("href", "")), inside)
        # Whatever a newer parser may return: an element that is not listed becomes its text.
        if token.hidden or token.tag not in _ELEMENTS:
            # The paragraphs of a tight list are hidden.
            return inside
        name = _HEADINGS.get(token.tag, token.tag)
        element = tag(name, inside, **_numbering(token))
        return tag("div", element, class_="scroll", tabindex=0) if name == "table" else element


def _numbering(token: Token) -> dict[str, int]:
    """Returns where an ordered list begins to count."""
    start = token.attrs.get("start") if token.tag == "ol" else None
    return {"start": start} if isinstance(start, int) else {}


def _single(token: Token) -> Content:
    match token.type:
        case "inline":
            return _Builder(token.children or ()).contents()
        case "softbreak":
            return "\n"
        case "hardbreak":
            return tag("br")
        case "hr":
            return tag("hr")
        case "code_inline":
            return tag("code", token.content)
        case "code_block" | "fence":
            return tag("pre", token.content, tabindex=0)
        case "image":
            return _image(str(token.attrs.get("src", "")), token.content)
        case _:
            return token.content


def _link(address: str, words: Content) -> Iterator[Content]:
    """Yields a link whose host is visible; other addresses are text."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or parts.path
    except ValueError:
        parts, host = None, address
    if parts is None or parts.scheme.lower() not in _SCHEMES:
        yield from (words, " (", tag("code", address), ")")
        return
    yield tag("a", words, href=address, rel="noopener noreferrer nofollow", target="_blank")
    yield tag("span", f" ({host})", class_="small soft")


def _image(address: str, words: str) -> Markup:
    return tag("span", f"[image: {words or 'no description'} · ", tag("code", address), "]")


def rendered_files(files: Mapping[str, str], source: str) -> Iterator[Markup]:
    """Yields the rendered texts of a version; `source` is the address of how they were written."""
    link = tag("a", "the source", href=source)
    yield tag("p", "Rendered for reading. What counts is ", link, ": it shows everything, ",
              "with the evidence of findings marked.", class_="notice")  # fmt: skip
    for path, text in files.items():
        if len(files) > 1:
            yield tag("h2", path, class_="mono")
        body = markdown_html(text) if is_markdown(path) else tag("pre", text[:MOST_TEXT])
        yield tag("div", body, class_="card")
