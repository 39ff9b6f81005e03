"""Tests of the first page."""

import httpx
import pytest

from signoff import Outcome, StepDef, Workflow
from signoff.app.settings.project import Project
from signoff.core.requests import Choice, Question, Request
from tests.store_suite.journal_writer import start_run
from tests.unit.surfaces.web.page_reader import PageReader
from tests.unit.surfaces.web.views.test_request import waiting


async def ended(project: Project, workflow: str, *names: str) -> None:
    step = StepDef("only", handler=lambda _context: (Outcome.OK, {}), next={Outcome.OK: None})
    async with project.engine() as engine:
        for name in names:
            await engine.start(Workflow(workflow, step), {}, name=name)


async def test_what_needs_the_user_comes_first(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """A user opens the page to see what to do next."""
    await ended(project, "docs", "old")
    await waiting(project, Question("Which name?"), name="asking")
    start_run(project.store, "busy")

    page = PageReader((await browser.get("/")).text)

    words = ("Needs you", "Which name?", "Under way", "Find among all runs", "Ended runs")
    order = [page.text.index(each) for each in words]
    assert order == sorted(order)
    assert "/requests/1" in page.addresses
    runs = [each for each in page.addresses if each.startswith("/runs")]
    assert runs == ["/runs/asking", "/runs/busy", "/runs/old"]


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        (Question("Which name?"), "question #1"),
        (Choice("Which way?", ["left", "right"]), "decision #1"),
        (Choice("Does it count?", ["approve", "reject"], question_id="sign_off"), "sign-off #1"),
    ],
    ids=str,
)
async def test_requests_are_called_what_they_are_to_a_human(
    project: Project, browser: httpx.AsyncClient, request_: Request, word: str
) -> None:
    """`choice` is a word of the engine."""
    await waiting(project, request_)

    for address in ("/", "/runs/run", "/requests/1"):
        assert word in PageReader((await browser.get(address)).text).text


async def test_runs_are_filtered_and_paged(project: Project, browser: httpx.AsyncClient) -> None:
    """Ten thousand runs are found by what one knows about them."""
    await ended(project, "docs", *(f"docs-{number}" for number in range(60)))
    await ended(project, "code", "code-1")

    first = PageReader((await browser.get("/")).text)
    (more,) = [each for each in first.addresses if "after=" in each]
    second = PageReader((await browser.get(more)).text)
    chosen = PageReader((await browser.get("/?workflow=code&status=completed&q=CODE")).text)
    none = await browser.get("/?q=%3Cb%3E")

    assert "/runs/docs-59" in first.addresses
    assert "/runs/docs-0" not in first.addresses
    assert "/runs/docs-0" in second.addresses
    assert [each for each in chosen.addresses if each.startswith("/runs")] == ["/runs/code-1"]
    assert "No run matches." in none.text
    assert "<b>" not in none.text.split("<form")[1]


async def test_an_unknown_status_is_an_error_with_the_valid_ones(
    browser: httpx.AsyncClient,
) -> None:
    """A link with a typing error must not show all runs."""
    response = await browser.get("/?status=done")

    assert response.status_code == 400
    assert "completed" in response.text


async def test_spend_is_shown_for_a_period(browser: httpx.AsyncClient) -> None:
    """Periods that no calendar has are refused."""
    assert "No agent was asked" in (await browser.get("/spend?days=7")).text
    assert (await browser.get("/spend?days=-1")).status_code == 422
