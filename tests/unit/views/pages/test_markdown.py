import re
from html.parser import HTMLParser

import pytest

from signoff.views.pages.markdown import DEEPEST, MOST_MARKDOWN, is_markdown, markdown_html
from tests.tables import table

ALLOWED = {
    "div", "p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em",
    "strong", "s", "a", "span", "br", "hr", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
ATTRIBUTES = {"class", "tabindex", "start", "href", "rel", "target"}


class Elements(HTMLParser):
    """Everything in a piece of HTML that a browser could act on."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "text <b onclick='x()'>bold</b> text",
    "<!-- hidden --> <style>*{display:none}</style>",
    "<svg/onload=alert(1)><iframe src=//evil.example>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](java\tscript:alert(1))",
    "[click](&#106;avascript:alert(1))",
    "[click](vbscript:msgbox(1))",
    "[click](data:text/html,<script>alert(1)</script>)",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](file:///etc/passwd)",
    "[click](//evil.example/x)",
    "[click](/requests/1)",
    "[click](#approve)",
    "<javascript:alert(1)>",
    "<data:text/html,x>",
    "![pixel](https://evil.example/p.gif)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "![a](x 'onerror=alert(1)')",
    "[![nested](https://evil.example/i.png)](javascript:alert(1))",
    "**[a](javascript:alert(1))** *<b>x</b>* `<script>`",
    "```html\n<script>alert(1)</script>\n```",
    "    <script>alert(1)</script>",
    "[a]: javascript:alert(1)\n\n[a]",
    '[x](https://a.example "\"><script>alert(1)</script>")',
    "[x](https://a.example/\"onmouseover=alert(1))",
    "| <script> | [x](javascript:1) |\n|---|---|\n| <img src=x> | ![y](http://evil.example) |",
    "# <script>\n\n> <iframe>\n\n1. <object data=x>",
    "[x](http://[::1)",
    "\x1b[31mred\x00 \u202eevil\u2066",
    "[x](https://user:pw@evil.example@real.example/)",
    "&lt;script&gt; &#60;script&#62;",
]  # fmt: skip


@table("text", HOSTILE)
def test_nothing_in_a_text_is_active(text: str) -> None:
    """A model writes the text, and the page that shows it can approve."""
    html = markdown_html(text)

    found = Elements(html)
    assert {name for name, _ in found.tags} <= ALLOWED
    for _, attributes in found.tags:
        assert set(attributes) <= ATTRIBUTES
        address = attributes.get("href")
        if address is not None:
            assert re.match(r"(https?|mailto):", address, re.IGNORECASE)
            assert attributes["rel"] == "noopener noreferrer nofollow"
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", html)


def test_texts_look_like_what_they_are() -> None:
    """A rendered view without structure would be no better than the source."""
    text = "# A\n\n*b* **c** ~~d~~ `e`\n\n3. x\n4. y\n\n> q\n\n---\n\n|h|\n|-|\n|v|\n\n```\nz\n```"

    html = markdown_html(text)

    for part in (
        "<h3>A</h3>", "<em>b</em>", "<strong>c</strong>", "<s>d</s>", "<code>e</code>",
        '<ol start="3">\n<li>x</li>', "<blockquote>\n<p>q</p>", "<hr />", "<th>h</th>",
        "<td>v</td>", ">z\n</pre>",
    ):  # fmt: skip
        assert part in html


def test_a_link_shows_where_it_leads() -> None:
    """`[your bank](https://evil.example)` must not look like the bank."""
    found = Elements(markdown_html("[your bank](https://evil.example/x) <a@b.example>"))

    assert "your bank (evil.example)" in found.text
    assert [each["href"] for name, each in found.tags if name == "a"] == [
        "https://evil.example/x",
        "mailto:a@b.example",
    ]


def test_an_image_is_its_description_and_its_address() -> None:
    """Fetching it would tell its server who reads the text, and when."""
    found = Elements(markdown_html("![a chart](https://evil.example/c.png)"))

    assert found.text == "[image: a chart · https://evil.example/c.png]\n"


@pytest.mark.parametrize(
    "text",
    ["x" * 1_000_000, "[" * 1_000_000, "> " * DEEPEST + "deep", "- " * DEEPEST + "deep"],
    ids=["long line", "long brackets", "quotations", "lists"],
)
def test_what_cannot_be_rendered_is_shown_as_it_was_written(text: str) -> None:
    """The time is bounded, and nothing is left out silently."""
    html = markdown_html(text)

    assert "This is its source." in html
    assert text[:MOST_MARKDOWN].replace(">", "&gt;")[:1000] in html


@pytest.mark.parametrize(
    ("path", "known"), [("", True), ("a/B.MD", True), ("x.markdown", True), ("x.py", False)]
)
def test_markdown_is_known_by_its_name(path: str, known: bool) -> None:
    """A program must not be shown as prose."""
    assert is_markdown(path) is known
