"""Tests of the page of a request, and of the answers that are given there."""

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from signoff import Outcome, StepContext, StepDef, Workflow
from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.settings.project import Project
from signoff.core.questions import Option, UserQuestion
from signoff.core.requests import (
    Approval,
    Choice,
    ItemState,
    Question,
    Questions,
    Request,
    RequestKind,
    Response,
)
from tests.unit.surfaces.web.page_reader import PageReader

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><!--\u202egnp"


async def waiting(project: Project, *requests: Request, name: str = "run") -> None:
    """Starts a run that waits for these requests."""

    async def ask(context: StepContext) -> tuple[Outcome, dict[str, Any]]:
        for number, request in enumerate(requests):
            await context.wait(request, key=f"q{number}")
        return Outcome.OK, {}

    workflow = Workflow("asks", StepDef("ask", handler=ask, next={Outcome.OK: None}))
    async with project.engine() as engine:
        await engine.start(workflow, {}, name=name, target="asks.py:WORKFLOW")


async def send(
    browser: httpx.AsyncClient, number: int, fields: Sequence[tuple[str, str]]
) -> httpx.Response:
    """Sends the form of a request with the digest that its page shows."""
    page = PageReader((await browser.get(f"/requests/{number}")).text)
    body = urlencode([("digest", page.fields["digest"]), *fields])
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return await browser.post(f"/requests/{number}", content=body, headers=headers)


def answer_of(project: Project) -> Any:
    (item,) = project.store.items(state=(ItemState.ANSWERED,))
    return item


TWO = [
    UserQuestion("Storage", "Where?", (Option("SQLite"), Option("PostgreSQL"))),
    UserQuestion("Parts", "Which?", (Option("a"), Option("b"), Option("c")), multi_select=True),
]


@pytest.mark.parametrize(
    ("request_", "fields", "value", "text"),
    [
        (Approval("Ship?", "the text"), [("action", "approve")], True, ""),
        (Approval("Ship?", "x"), [("action", "reject"), ("text", "too long")], False, "too long"),
        (Choice("Go?", ["yes", "no"]), [("value", "no"), ("text", "")], "no", ""),
        (Question("Why?"), [("value", "two\r\nlines")], "two\nlines", ""),
        (Response("Write it."), [("value", "written")], "written", ""),
        (
            Questions("Decide.", TWO),
            [("question-0", "SQLite"), ("question-1", "a"), ("question-1", "c")],
            {"Storage": "SQLite", "Parts": ["a", "c"]},
            "",
        ),
    ],
    ids=["approve", "reject", "choice", "question", "response", "questions"],
)
async def test_every_kind_of_request_is_answered_on_its_page(
    project: Project,
    browser: httpx.AsyncClient,
    request_: Request,
    fields: list[tuple[str, str]],
    value: Any,
    text: str,
) -> None:
    """What cannot be answered in the page would look stalled there."""
    await waiting(project, request_)

    response = await send(browser, 1, fields)

    assert (response.status_code, response.headers["location"]) == (303, "/runs/run?done=1")
    item = answer_of(project)
    assert item.answered_by == "ann"
    assert f'"value": {json.dumps(value)}' in item.answer
    assert f'"text": "{text}"' in item.answer


async def test_an_answer_without_the_digest_of_what_was_shown_is_refused(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """Every answer is bound to what was on the screen."""
    await waiting(project, Approval("Ship?", "the text"))

    missing = await browser.post("/requests/1", content=b"action=approve")
    other = await browser.post("/requests/1", content=f"action=approve&digest={'0' * 64}".encode())

    assert (missing.status_code, other.status_code) == (422, 409)
    assert "out of date" in other.text
    assert len(project.store.items()) == 1


async def test_the_second_of_two_deciders_is_told_who_decided(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """Both have the page open, and both click."""
    await waiting(project, Approval("Ship?", "the text"))
    page = PageReader((await browser.get("/requests/1")).text)
    record_answer(project, 1, AnswerInput(False, "not yet", by="bob"))

    body = urlencode({"digest": page.fields["digest"], "action": "approve", "text": "fine"})
    response = await browser.post("/requests/1", content=body)

    assert response.status_code == 409
    assert "rejected by bob" in PageReader(response.text).text
    assert "not yet" in response.text


async def test_a_refused_answer_keeps_what_was_typed(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """A long explanation must not be lost because a choice was missing."""
    needs = [Option("change", requires_input=True), Option("stop")]
    await waiting(project, Choice("Go?", needs), Question("Why?"))

    response = await send(browser, 1, [("value", "change"), ("text", "  ")])
    wrong = await send(browser, 1, [("value", "fly"), ("text", "my <long> reason")])

    assert (response.status_code, wrong.status_code) == (422, 422)
    assert "needs an explanation" in response.text
    assert "my &lt;long&gt; reason</textarea>" in wrong.text
    assert project.store.items()[0].state == "open"


async def test_the_approver_edits_the_file_on_the_page(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """Where a request accepts edits, a small correction needs no other program."""
    await waiting(project, Approval("Ship?", path="out.md", edits="accept"))
    (project.folder("run") / "out.md").write_text("one\ntwo\n")
    page = PageReader((await browser.get("/requests/1")).text)
    shown = [("file_digest", page.fields["file_digest"]), ("action", "approve")]

    response = await send(browser, 1, [*shown, ("content", "one\r\n2\r\n")])

    assert response.status_code == 303
    assert (project.folder("run") / "out.md").read_text() == "one\n2\n"
    assert '"content": "one\\n2\\n"' in answer_of(project).answer


async def test_an_edit_of_a_file_that_has_changed_meanwhile_is_refused(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """It would overwrite what someone else has just written."""
    await waiting(project, Approval("Ship?", path="out.md", edits="accept"))
    file = project.folder("run") / "out.md"
    file.write_text("one\n")
    page = PageReader((await browser.get("/requests/1")).text)
    file.write_text("another\n")

    fields = [
        ("file_digest", page.fields["file_digest"]),
        ("content", "two"),
        ("action", "approve"),
    ]
    response = await send(browser, 1, fields)

    assert response.status_code == 409
    assert file.read_text() == "another\n"
    assert len(project.store.items()) == 1


@pytest.mark.parametrize("kind", list(RequestKind))
async def test_hostile_texts_stay_texts(
    project: Project, browser: httpx.AsyncClient, kind: RequestKind
) -> None:
    """Prompts and contents come from models."""
    asked = {
        RequestKind.QUESTION: Question(HOSTILE, shown={HOSTILE: HOSTILE}),
        RequestKind.APPROVAL: Approval(HOSTILE, {"nested": [HOSTILE]}),
        RequestKind.CHOICE: Choice(HOSTILE, [Option(HOSTILE, description=HOSTILE)]),
        RequestKind.QUESTIONS: Questions(
            HOSTILE, [UserQuestion("x", HOSTILE, (Option("<b>", description=HOSTILE),))]
        ),
        RequestKind.RESPONSE: Response(HOSTILE, schema={"title": HOSTILE}),
    }
    await waiting(project, asked[kind])

    for address in ("/requests/1", "/", "/runs/run"):
        page = PageReader((await browser.get(address)).text)

        assert "<script>alert(1)</script>" in page.text or address == "/runs/run"
        assert page.handlers == []
        assert set(page.addresses) <= {each for each in page.addresses if each[0] in "/#"}
        assert "img" not in page.tags
        assert page.tags.count("script") == 3


async def test_a_text_of_a_megabyte_is_cut_and_can_be_opened(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """A browser would stop at a line of a megabyte, but all of it must be readable."""
    line = "x" * 1_000_000
    await waiting(project, Approval("Ship?", line))

    page = await browser.get("/requests/1")
    whole = await browser.get("/requests/1/shown/0")

    assert len(page.text) < 500_000
    assert "/requests/1/shown/0" in page.text
    assert whole.text == line
    assert whole.headers["content-type"].startswith("text/plain")


async def test_what_is_approved_is_also_shown_as_its_readers_will_see_it(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """The source is what the answer is bound to, so it is shown first."""
    text = "# Title\n\n[x](javascript:alert(1)) ![y](http://evil/y.png) <script>z</script>\n"
    await waiting(project, Approval("Publish it?", text))

    source = PageReader((await browser.get("/requests/1")).text)
    rendered = PageReader((await browser.get("/requests/1/rendered/0")).text)
    none = await browser.get("/requests/1/rendered/7")

    assert "/requests/1/rendered/0" in source.addresses
    assert "# Title" in source.text
    assert "h3" in rendered.tags
    assert "# Title" not in rendered.text
    assert not {"script", "img"} & set(rendered.tags)
    assert {each[0] for each in rendered.addresses} == {"/", "#"}
    assert none.status_code == 400
