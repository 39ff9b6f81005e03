"""Tests of the list of workflows, and of the form that starts a run."""

from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from signoff.app.settings.project import Project
from signoff.app.settings.settings import Settings
from signoff.store.sqlite import SqliteStore
from signoff.surfaces.web.access import Access, AccessScope
from tests.store_suite.journal_writer import start_run
from tests.unit.surfaces.web.page_reader import PageReader

WORKFLOW = """
from typing import Annotated
from signoff import Arg, Outcome, StepContext, StepDef, Workflow

def plan(
    context: StepContext,
    version: Annotated[str, Arg("The <b>version</b>")],
    channel: Annotated[str, Arg(choices=("beta", "stable"))] = "beta",
    copies: Annotated[int, Arg(min=1, max=9)] = 2,
    dry: bool = True,
    tags: list[str] = ["a", "b"],
) -> tuple[Outcome, dict]:
    return Outcome.OK, {}

WORKFLOW = Workflow(
    "release", StepDef("plan", handler=plan, next={Outcome.OK: None}), description="Releases it."
)
"""
TARGET = ".signoff/flows/release.py:WORKFLOW"
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a workflow in Python and a file that cannot be used, in a database."""
    from signoff.app.settings.home import init_home

    home = init_home(tmp_path, {}).home
    home.flows.mkdir(parents=True, exist_ok=True)
    (home.flows / "release.py").write_text(WORKFLOW)
    (home.flows / "broken.yaml").write_text("workflow: 7\n")
    return Project(home, Settings(), SqliteStore(home.path / "signoff.db"), tmp_path)


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs stay queued: no test starts a process."""
    monkeypatch.setattr("signoff.surfaces.web.views.start.ensure_worker", lambda _project: None)


def address(target: str) -> str:
    return f"/workflows/start?{urlencode({'target': target})}"


async def test_the_form_is_made_from_the_parameters(browser: httpx.AsyncClient) -> None:
    """Types, choices, ranges and defaults are known, so the browser can check them."""
    response = await browser.get(address(TARGET))

    page = PageReader(response.text)
    assert page.fields["param-copies"] == "2"
    assert page.fields["param-tags"] == "a, b"
    assert '<option value="beta" selected>' in response.text
    assert 'type="number" min="1" max="9"' in response.text
    assert "The <b>version</b>" in page.text
    assert "b" not in page.tags or "&lt;b&gt;" in response.text


async def test_a_run_is_started_with_what_was_entered(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """It is queued: a worker drives it, whatever becomes of the page."""
    fields = {
        "target": TARGET, "param-version": "1.2", "param-channel": "stable", "param-copies": "3",
        "param-tags": "x,y", "name": "first",
    }  # fmt: skip

    response = await browser.post("/workflows/start", content=urlencode(fields), headers=FORM)

    assert (response.status_code, response.headers["location"]) == (303, "/runs/first")
    row = project.store.row("first")
    assert row.status == "queued"
    started = project.store.journal(row.id)[0].events
    for value in ('"version":"1.2"', '"channel":"stable"', '"copies":3', '"dry":false'):
        assert value in started
    assert '"tags":["x","y"]' in started


async def test_what_is_wrong_is_listed_and_what_was_entered_stays(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """Nothing is started, and nothing that was typed is lost."""
    fields = {"target": TARGET, "param-version": "", "param-copies": "12", "param-tags": "kept"}

    response = await browser.post("/workflows/start", content=urlencode(fields), headers=FORM)

    assert response.status_code == 422
    assert "'version': is missing" in PageReader(response.text).text
    assert "'copies': 12 is above 9" in PageReader(response.text).text
    assert PageReader(response.text).fields["param-tags"] == "kept"
    assert project.store.rows() == []


FLOW = """
name: letter
workflow:
  - {step: generate, agent: manual}
"""


@pytest.mark.parametrize(
    ("target", "entered", "words"),
    [
        (TARGET, {"param-version": "1", "name": "../x"}, "not a valid run name"),
        (TARGET, {"param-version": "1", "name": "taken"}, "already exists"),
        (".signoff/flows/letter.yaml", {}, "there is no goal"),
        (".signoff/flows/letter.yaml", {"option-goal": "no.md"}, "does not exist"),
    ],
    ids=str,
)
async def test_wrong_names_and_options_are_explained_above_the_form(
    project: Project,
    browser: httpx.AsyncClient,
    target: str,
    entered: dict[str, str],
    words: str,
) -> None:
    """Nothing is started."""
    (project.home.flows / "letter.yaml").write_text(FLOW)
    start_run(project.store, "taken")
    body = urlencode({"target": target, **entered})

    response = await browser.post("/workflows/start", content=body, headers=FORM)

    assert response.status_code == 422
    notice = response.text.partition('role="alert">')[2].partition("</div>")[0]
    assert words in notice
    assert len(project.store.rows()) == 1


async def test_only_workflows_of_the_list_can_be_started(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """A form that names any other file of the machine is refused."""
    (project.home.root / "evil.py").write_text("raise SystemExit(99)")

    shown = await browser.get(address("evil.py"))
    body = urlencode({"target": "evil.py"})
    sent = await browser.post("/workflows/start", content=body, headers=FORM)

    assert {shown.status_code, sent.status_code} == {404}


async def test_an_agent_uses_the_rest_interface(
    access: Access, stranger: httpx.AsyncClient
) -> None:
    """The form lets a human switch on the scripts of a flow, which an agent may not."""
    token = access.new_token("bot", AccessScope.OPERATE, agent=True)
    headers = {**FORM, "authorization": f"Bearer {token}"}

    body = urlencode({"target": TARGET, "param-version": "1"})
    response = await stranger.post("/workflows/start", content=body, headers=headers)

    assert response.status_code == 403


async def test_a_form_with_too_many_fields_is_refused(browser: httpx.AsyncClient) -> None:
    """The server has no fault, so nobody should look for one in its log."""
    body = "&".join(f"f{number}=1" for number in range(100_000))

    refused = await browser.post(address(TARGET), content=body, headers=FORM)

    assert 400 <= refused.status_code < 500
    assert "at most 500 fields" in refused.text
