"""The web page in a real browser: a review is watched, and signed off, in every way people use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.acceptance.served_project import ServedProject, served_project

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

pytestmark = pytest.mark.slow

PHONE: ViewportSize = {"width": 360, "height": 740}
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
FLOW = """
description: Reviews the pages of the docs folder.
artifact: {path: docs}
constraints:
  inline: {honest: Promise nothing that cannot be kept., short: Say it in few words.}
output: {write_back: on_approval}
workflow:
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: apply, loop_to: review}
  - {step: sign_off, name: approval}
"""
MARKDOWN = """\
# Notes

Some *text* with `code`, a [link](https://example.com/a) and ![a picture](https://example.com/p.png).

> A quote.

1. first
   - inner

| name | size |
| ---- | ---: |
| a    |    1 |

```python
print("a very long line that does not fit on the screen of any phone, whatever its owner does")
```

<b>raw HTML</b>

---
"""
"""Everything that the rendered view knows."""
HINT = {"path": "docs/guide.md", "evidence": "It usually works.", "finding": "How often?"}
"""A finding that stays open, because it does not block."""
FLAW = {
    "path": "docs/guide.md",
    "evidence": "It always works.",
    "finding": "No program <b>always</b> works.",
    "severity": "HIGH",
    "edit": {"kind": "replace", "find": "always", "text": "usually"},
}
PASS: dict[str, Any] = {"overall": "PASS", "issues": []}
SCRIPT = {
    "version": 1,
    "rules": [
        {"step": "review", "key": "short", "contains": "It usually works.",
         "json": {"overall": "FAIL", "issues": [{**HINT, "severity": "MEDIUM"}]}},
        {"step": "review", "contains": "It usually works.", "json": PASS},
        {"step": "review", "contains": "It works.", "json": PASS},
        {"step": "review", "key": "honest", "contains": "always works",
         "json": {"overall": "FAIL", "issues": [FLAW]}},
        {"step": "review", "json": PASS},
        {"step": "fix", "text": "ok", "files": {"guide.md": "It works.\n"}},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProject]:
    """One server and one browser for all tests."""
    files = {
        "docs/guide.md": "It always works.\n",
        "docs/notes.md": MARKDOWN,
        ".signoff/flows/review.yaml": FLOW,
        ".signoff/script.yaml": json.dumps(SCRIPT),
    }
    with served_project(tmp_path_factory.mktemp("web") / "guide", files) as project:
        yield project


def start(web: ServedProject, name: str) -> None:
    """Starts a run of the review that a worker drives, and restores what it reviews."""
    (web.folder / "docs" / "guide.md").write_text("It always works.\n")
    web.signoff("run", ".signoff/flows/review.yaml", "--name", name, "--detach")


def test_a_review_is_started_watched_live_and_signed_off_by_mouse(web: ServedProject) -> None:
    """The page follows the worker by itself, and the decision changes the project's files."""
    from playwright.sync_api import expect

    context = web.window()
    page = context.new_page()
    page.goto(f"{web.base}/workflows")
    page.get_by_role("link", name="review").first.click()
    page.get_by_label("Name of the run").fill("mouse")
    page.get_by_role("button", name="Start").click()

    page.get_by_role("link", name="Review and decide").click()
    page.wait_for_url("**/requests/*")
    expect(page.locator(".hunk").first).to_contain_text("usually")
    page.get_by_role("button", name="Approve").click()

    expect(page.locator("#status")).to_contain_text("approved")
    expect(page.get_by_text("Request #1: approved by")).to_be_visible()
    assert (web.folder / "docs" / "guide.md").read_text() == "It usually works.\n"
    context.close()


def test_an_open_page_follows_what_other_processes_do(web: ServedProject) -> None:
    """Someone who watches sees the answer of someone else, and keeps what was typed."""
    from playwright.sync_api import expect

    start(web, "watched")
    context = web.window()
    page = context.new_page()
    page.goto(f"{web.base}/runs/watched")
    expect(page.get_by_role("link", name="Review and decide")).to_be_visible()
    # From here on, the page follows; before, a refresh would be lost.
    expect(page.locator("#live-state")).to_have_text("live")
    page.evaluate("window.sameDocument = true")
    page.get_by_text("Cancel…").click()
    why = page.get_by_label("Why")
    why.fill("still typing")
    with page.expect_response(f"{web.base}/runs/watched"):
        page.evaluate("document.body.dispatchEvent(new CustomEvent('signoff:refresh'))")
    expect(why).to_be_focused()
    expect(why).to_have_value("still typing")

    web.signoff("approve", "watched", "--by", "bob")
    expect(page.get_by_role("link", name="Review and decide")).to_have_count(0)
    expect(page.locator("#status")).to_contain_text("approved")

    assert page.evaluate("window.sameDocument") is True
    assert "bob" in page.locator("#decisions").inner_text()
    context.close()


def test_a_change_is_requested_and_approved_by_keyboard_only(web: ServedProject) -> None:
    """Not everyone uses a mouse; where the focus is must be visible."""
    from playwright.sync_api import expect

    start(web, "keyboard")
    context = web.window(reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{web.base}/runs/keyboard")
    decide = page.get_by_role("link", name="Review and decide")
    expect(decide).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"

    _tab_to(page, "Review and decide")
    assert _outline(page) != "none"
    page.keyboard.press("Enter")
    page.wait_for_url("**/requests/*")
    first = page.url
    _tab_to(page, "field-text")
    page.keyboard.type("docs/guide.md should be shorter")
    _tab_to(page, "Request changes")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/keyboard?done=*")
    expect(decide).to_be_visible()
    _tab_to(page, "Review and decide")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/requests/" in url and url != first)
    _tab_to(page, "Approve")
    page.keyboard.press("Enter")

    expect(page.locator("#status")).to_contain_text("approved")
    assert (web.folder / "docs" / "guide.md").read_text() == "It works.\n"
    context.close()


def test_everything_works_without_scripts_on_a_phone(web: ServedProject) -> None:
    """Forms post and redirect; nothing is wider than the screen."""
    from playwright.sync_api import expect

    start(web, "phone")
    live = web.window()
    watching = live.new_page()
    watching.goto(f"{web.base}/runs/phone")
    expect(watching.get_by_role("link", name="Review and decide")).to_be_visible()
    live.close()
    context = web.window(java_script_enabled=False, viewport=PHONE)
    page = context.new_page()

    page.goto(web.base)
    page.get_by_role("link", name="Decide request").last.click()
    page.get_by_role("button", name="Request changes").click()
    expect(page.get_by_role("alert")).to_contain_text("needs an explanation")
    page.get_by_label("Comment").fill("not this time")
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("not this time").first).to_be_visible()
    while "not approved" not in page.locator("#status").inner_text():
        page.reload()

    assert "rejected" in page.locator("#status").inner_text()
    context.close()


PAGES = (
    *("/", "/?q=nothing", "/workflows", "/workflows/start?target=.signoff/flows/review.yaml"),
    *("/runs/shown", "/runs/shown/findings", "/runs/shown/log"),
    *("/runs/shown/files", "/runs/shown/rendered", "/requests/LAST", "/requests/1"),
    *("/spend", "/nothing"),
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_barrier_is_too_wide_or_asks_another_host(
    web: ServedProject, theme: str
) -> None:
    """Every page can be read by everyone, on every screen, and by no one else."""
    from axe_playwright_python import (  # type: ignore[import-untyped]  # it has no type hints
        sync_playwright as axe,
    )
    from playwright.sync_api import expect

    if not (web.folder / ".signoff" / "runs" / "shown").exists():
        start(web, "shown")
    context = web.window(color_scheme=theme)
    page = context.new_page()
    page.goto(f"{web.base}/runs/shown")
    decide = page.get_by_role("link", name="Review and decide")
    expect(decide).to_be_visible()
    last = (decide.get_attribute("href") or "").rpartition("/")[2]
    page.goto(f"{web.base}/runs/shown/rendered")
    expect(page.get_by_role("heading", name="Notes", exact=True)).to_be_visible()
    # Only the colors depend on the theme.
    rules = {"runOnly": ["color-contrast"]} if theme == "dark" else {}
    errors: list[str] = []
    refused: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    barriers = []
    for address in PAGES:
        page.goto(web.base + address.replace("LAST", last))
        refused += [each for each in errors if "404" not in each]
        # The checker itself tries to change styles, which the page does not allow.
        result = axe.Axe().run(page, options=rules).response["violations"]
        errors.clear()
        barriers += [(address, each["id"], each["nodes"][0]["html"][:200]) for each in result]
        page.set_viewport_size(PHONE)
        width = page.evaluate("document.documentElement.scrollWidth")
        barriers += [(address, "too wide", str(width))] if width > PHONE["width"] else []
        page.set_viewport_size(DESKTOP)
    context.close()

    assert barriers == []
    assert refused == []
    assert {urlsplit(each).netloc for each in web.requests} == {urlsplit(web.base).netloc}


def _tab_to(page: Page, name: str) -> None:
    """Moves the focus with the tab key to what has this text or id."""
    for _ in range(150):
        page.keyboard.press("Tab")
        focus = page.evaluate(
            "() => [document.activeElement.id, document.activeElement.textContent.trim()]"
        )
        if name in focus:
            return
    raise AssertionError(f"the tab key does not lead to {name!r}")


def _outline(page: Page) -> str:
    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    return str(style)
