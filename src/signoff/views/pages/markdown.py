"""Markdown as HTML without active content.

Texts of models are hostile. markdown-it escapes them and renders no HTML that is in them; of the
attributes that it sets, only those that are listed here are kept, and only addresses of the web and
of mail become links. Nothing is ever fetched: an image becomes its description and its address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from signoff.documents.control_characters import escape_controls
from signoff.views.pages.html import Markup, join, tag
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
_ATTRIBUTES = frozenset({"href", "src", "start"})
"""What is kept of the attributes that the parser sets; the others are styles and titles."""


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
    # What is no link stays as it was written.
    parser.validateLink = _is_web_address  # type: ignore[method-assign]  # how the library has it
    for name, rule in _RULES.items():
        parser.add_render_rule(name, rule)
    tokens = parser.parse(text)
    if any(token.level >= DEEPEST - 1 for token in tokens):
        # The parser leaves out what is nested deeper, and a reader would not know.
        return _source(text, "The text is nested too deep to be rendered.")
    _restrict(tokens)
    html = parser.renderer.render(tokens, parser.options, {})
    # Entities can stand for characters that reorder a page.
    return tag("div", Markup(escape_controls(html)), class_="rendered")


def _source(text: str, why: str) -> Markup:
    shown = text[:MOST_TEXT]
    rest = f" Its first {len(shown):,} characters follow." if len(shown) < len(text) else ""
    return join([tag("p", f"{why} This is its source.{rest}", class_="notice"), tag("pre", shown)])


def _is_web_address(url: str) -> bool:
    try:
        return urlsplit(url).scheme.lower() in _SCHEMES
    except ValueError:
        return False


def _restrict(tokens: Sequence[Token]) -> None:
    """Leaves tokens only what this page shows of them, and notes the hosts of links."""
    host = ""
    for token in tokens:
        token.tag = _HEADINGS.get(token.tag, token.tag)
        token.attrs = {name: v for name, v in token.attrs.items() if name in _ATTRIBUTES}
        if token.type == "link_open":
            parts = urlsplit(str(token.attrs["href"]))
            host = parts.hostname or parts.path
            token.attrs |= {"rel": "noopener noreferrer nofollow", "target": "_blank"}
        elif token.type == "link_close":
            token.meta["host"] = host
        _restrict(token.children or ())


def _link_end(_renderer: Any, tokens: Sequence[Token], at: int, *_options: Any) -> str:
    """Returns the end of a link with its host: its words may name another one."""
    host = tokens[at].meta["host"]
    return f"</a>{tag('span', f' ({host})', class_='small soft')}"


def _image(_renderer: Any, tokens: Sequence[Token], at: int, *_options: Any) -> str:
    token = tokens[at]
    address = tag("code", str(token.attrs["src"]))
    return tag("span", f"[image: {token.content or 'no description'} · ", address, "]")


def _code(_renderer: Any, tokens: Sequence[Token], at: int, *_options: Any) -> str:
    return tag("pre", tokens[at].content, tabindex=0)


_RULES: Mapping[str, Callable[..., str]] = {
    "link_close": _link_end,
    "image": _image,
    "fence": _code,
    "code_block": _code,
    "table_open": lambda *_: '<div class="scroll" tabindex="0"><table>',
    "table_close": lambda *_: "</table></div>",
}
"""What looks otherwise than the library has it."""


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
