"""The files of a run: their list, and their texts as readers will see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from signoff.pages.findings import MOST_TEXT
from signoff.pages.html import Markup, tag
from signoff.pages.markdown import is_markdown, markdown_html
from signoff.pages.parts import run_path, scrollable, table


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


def file_list(run: str, files: Sequence[tuple[str, int]]) -> Markup:
    """Returns a table of files by path, each with its size in bytes."""
    if not files:
        return tag("p", "This run has no files.", class_="soft")
    rows = [
        (tag("a", path, href=run_path(run, "files", *path.split("/"))), f"{size:,}")
        for path, size in files
    ]
    return scrollable("Files", table(("File", "Bytes"), rows, numbers=1))
