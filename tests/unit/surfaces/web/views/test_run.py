"""Tests of the page of a run, and of the pages below it."""

import gzip
import time

import httpx

from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.settings.project import Project
from signoff.core.requests import Question
from tests.unit.surfaces.web.long_review import LongReview
from tests.unit.surfaces.web.page_reader import PageReader
from tests.unit.surfaces.web.views.test_request import waiting

LARGEST_PAGE = 100_000
"""Bytes of the largest page, compressed."""
SECONDS = 1.0
"""Of processor time for one page; it takes 50 ms on a machine that has nothing else to do."""


async def test_a_long_review_is_shown_quickly_and_is_small(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """Twenty rounds with five hundred findings open without a pause, again and again."""
    LongReview(project.store).write()
    await browser.get("/runs/long")
    begun = time.process_time()

    page = await browser.get("/runs/long")

    assert time.process_time() - begun < SECONDS
    assert len(gzip.compress(page.content, 5)) <= LARGEST_PAGE
    shown = PageReader(page.text)
    assert "475 findings" not in shown.text
    assert "All 475 fixed findings" in shown.text
    assert shown.tags.count("mark") >= 20
    assert len(set(shown.ids)) == len(shown.ids)


async def test_links_inside_of_the_page_lead_somewhere(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """Findings, their evidence and the hunks that answer them point at each other."""
    LongReview(project.store, rounds=3, findings=30).write()

    page = PageReader((await browser.get("/runs/long?from=1&to=3")).text)
    found = PageReader((await browser.get("/runs/long/findings")).text)

    inner = {each for each in page.addresses if each.startswith("#")}
    assert inner <= {f"#{each}" for each in page.ids}
    assert any(each.startswith("#m-") for each in inner)
    assert sum(each.startswith("f-") for each in found.ids) == 30


async def test_a_run_is_cancelled_with_a_reason_and_its_author(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """A user who looks at the run later sees who stopped it, and why."""
    await waiting(project, Question("Which name?"))

    response = await browser.post("/runs/run/cancel", content=b"why=wrong+topic")
    page = PageReader((await browser.get("/runs/run")).text)

    assert (response.status_code, response.headers["location"]) == (303, "/runs/run")
    assert "by ann: wrong topic" in page.text
    assert project.store.row("run").status == "cancelled"
    assert "/runs/run/cancel" not in page.actions


async def test_files_are_sent_as_plain_text_and_only_those_of_the_run(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """A file that a model wrote must not act as a page of this server."""
    await waiting(project, Question("Which name?"))
    folder = project.folder("run")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "page.html").write_text("<script>alert(1)</script>")
    (folder / "secret").symlink_to("/etc/hostname")

    listed = PageReader((await browser.get("/runs/run/files")).text)
    page = await browser.get("/runs/run/files/page.html")
    link = await browser.get("/runs/run/files/secret")
    outside = await browser.get("/runs/run/files/..%2F..%2Fconfig.yaml")
    missing = await browser.get("/runs/run/files/nothing.md")

    assert "/runs/run/files/page.html" in listed.addresses
    assert "secret" not in listed.text
    assert page.headers["content-type"].startswith("text/plain")
    assert page.headers["content-security-policy"].startswith("sandbox")
    assert [each.status_code // 100 for each in (link, outside, missing)] == [4, 4, 4]


async def test_a_run_that_was_answered_elsewhere_can_be_continued(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """Its answer waits for someone to resume it; a run that waits for an answer cannot be."""
    await waiting(project, Question("Which name?"))
    before = PageReader((await browser.get("/runs/run")).text)
    record_answer(project, 1, AnswerInput("this one", by="bob"))

    after = PageReader((await browser.get("/runs/run")).text)
    response = await browser.post("/runs/run/resume")

    assert "/runs/run/resume" not in before.actions
    assert "/runs/run/resume" in after.actions
    assert response.status_code == 303
    assert project.store.row("run").status == "queued"


class MarkdownReview(LongReview):
    """A review of a text with headings."""

    def _sentence(self, words: int) -> str:
        return f"## {super()._sentence(words)}"


async def test_a_text_is_also_shown_as_its_readers_will_see_it(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """Without scripts, one click away from the source, which stays what is shown first."""
    MarkdownReview(project.store, rounds=2, findings=2, lines=3).write()

    source = PageReader((await browser.get("/runs/long")).text)
    rendered = await browser.get("/runs/long/rendered")
    first = PageReader((await browser.get("/runs/long/rendered?version=1")).text)
    none = await browser.get("/runs/long/rendered?version=99")

    assert "/runs/long/rendered" in source.addresses
    assert "h4" not in source.tags
    page = PageReader(rendered.text)
    assert page.tags.count("h4") == 3
    assert "/runs/long#text" in page.addresses
    assert "version 1" in first.text
    assert none.status_code == 400


class HostileReview(LongReview):
    """A review whose texts all try to be something else."""

    def _sentence(self, words: int) -> str:
        return f"{self._chance.choice(PAYLOADS)} {super()._sentence(words)}"


PAYLOADS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</textarea><script>1</script>",
    "</pre></details></main><iframe src=//evil>", "javascript:alert(1)", "<svg onload=alert(1)>",
    "![x](http://evil/x.png)", "<a href=javascript:alert(1)>x</a>", "\" onfocus=alert(1) x=\"",
    "' autofocus onfocus='alert(1)", "<style>*{display:none}</style>", "<!-- ", "]]>", "&lt;b&gt;",
    "\u202eevorppa", "\x1b[2J", "\u0000", "<base href=//evil>", "<form action=//evil><button>",
    "<meta http-equiv=refresh content=0>", "{{7*7}}", "${7*7}", "<hx-get>", "hx-on::load=alert(1)",
    "<div hx-get=//evil hx-trigger=load>",
)  # fmt: skip


async def test_hundreds_of_hostile_texts_stay_texts(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """Findings, quotes, fixes and the text itself come from models and files."""
    HostileReview(project.store, rounds=4, findings=240).write()
    pages = ("/runs/long?from=1&to=4", "/runs/long", "/runs/long/findings", "/",
             "/runs/long/rendered")  # fmt: skip

    for address in pages:
        text = (await browser.get(address)).text
        page = PageReader(text)

        assert page.handlers == []
        assert {each[0] for each in page.addresses} <= {"/", "#"}
        assert not {"img", "iframe", "style", "base", "object", "textarea"} & set(page.tags)
        assert page.tags.count("script") <= 3
        assert set(page.actions) <= {
            "/",
            "/logout",
            "/runs/long/cancel",
            "/runs/long/resume",
            "/runs/long#changes",
        }
        assert set(page.loading) <= {"live", "listener"}
        assert not set("\u202e\x1b\0") & set(text)


class LongLines(LongReview):
    """A review of a text of a few lines, each a megabyte long, as minified files have them."""

    def _sentence(self, words: int) -> str:
        return self._chance.choice("abc") * 1_000_000


async def test_lines_of_a_megabyte_are_cut(project: Project, browser: httpx.AsyncClient) -> None:
    """A browser would stop at them."""
    LongLines(project.store, rounds=2, findings=4, lines=3).write()

    for address in ("/runs/long", "/runs/long/findings", "/runs/long/log",
                    "/runs/long/rendered"):  # fmt: skip
        page = await browser.get(address)

        assert page.status_code == 200
        assert len(page.text) < 1_000_000
    assert "more characters" in (await browser.get("/runs/long/findings")).text


async def test_a_run_that_was_deleted_is_a_clear_error(browser: httpx.AsyncClient) -> None:
    """An open page may outlive its run."""
    for address in ("/runs/gone", "/runs/gone/log", "/runs/gone/files", "/requests/9"):
        response = await browser.get(address)

        assert response.status_code == 404
        assert "text/html" in response.headers["content-type"]


async def test_exports_are_saved_not_shown(project: Project, browser: httpx.AsyncClient) -> None:
    """The report has styles of its own, which pages of this server may not have."""
    LongReview(project.store, rounds=2, findings=4).write()

    response = await browser.get("/api/v1/runs/long/exports/html")
    unknown = await browser.get("/api/v1/runs/long/exports/pdf")

    assert response.headers["content-disposition"] == "attachment; filename*=utf-8''long.html"
    assert "Made by signoff" in response.text
    assert unknown.status_code == 404
