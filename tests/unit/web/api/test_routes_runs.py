import json

import httpx

from signoff.app.project import Project
from signoff.web.access import Access, AccessScope
from signoff.web.server import PageApp
from tests.unit.web.review_project import work


async def test_a_list_has_pages(project: Project, program: httpx.AsyncClient) -> None:
    """Each names the next."""
    from tests.unit.web.review_project import TARGET

    for number in range(3):
        await program.post("/api/v1/runs", json={"target": TARGET, "name": f"run-{number}"})

    first = (await program.get("/api/v1/runs", params={"limit": 2, "status": "queued"})).json()
    last = (await program.get("/api/v1/runs", params={"cursor": first["next"]})).json()

    assert [each["run"] for each in first["runs"]] == ["run-2", "run-1"]
    assert [each["run"] for each in last["runs"]] == ["run-0"]
    assert last["next"] is None


async def test_a_run_shows_no_path_of_the_machine(
    project: Project, program: httpx.AsyncClient, waiting: str
) -> None:
    """Neither while it waits nor with its result: that is named from the run's folder."""
    pending = (await program.get(f"/api/v1/runs/{waiting}")).json()
    body = {"digest": pending["inbox"][0]["digest"], "value": "approve", "resume": False}
    await program.post(f"/api/v1/inbox/{pending['inbox'][0]['number']}/answer", json=body)
    await work(project, waiting)

    ended = (await program.get(f"/api/v1/runs/{waiting}")).json()

    assert ended["result"]["path"] == "final/artifact.md"
    for document in (pending, ended):
        assert str(project.home.root) not in json.dumps(document)


async def test_the_journal_is_read_page_by_page(program: httpx.AsyncClient, waiting: str) -> None:
    """Everything that happened, in order, and nothing twice."""
    path, seen, after = f"/api/v1/runs/{waiting}/journal", [], 0
    while True:
        page = (await program.get(path, params={"after": after, "limit": 3})).json()
        seen += page["events"]
        if page["next"] is None:
            break
        after = page["next"]

    whole = (await program.get(path, params={"limit": 1000})).json()["events"]
    assert seen == whole
    assert whole[0]["event"]["e"] == "run_started"


def unsafe_routes(app: PageApp) -> list[tuple[str, str]]:
    """Returns every operation that can change something."""
    return [
        (method.upper(), path)
        for path, operations in app.routes.openapi()["paths"].items()
        for method in operations
        if method != "get"
    ]


async def test_no_operation_that_changes_something_takes_a_token_for_reading(
    app: PageApp, access: Access, stranger: httpx.AsyncClient
) -> None:
    """A route that is added later is covered as well."""
    stranger.headers["authorization"] = f"Bearer {access.new_token('reader', AccessScope.READ)}"
    routes = unsafe_routes(app)
    assert len(routes) >= 4

    for method, path in routes:
        path = path.replace("{run}", "first").replace("{number}", "1")
        refused = await stranger.request(method, path, json={})
        assert (refused.status_code, refused.json()["kind"]) == (403, "ScopeMissing"), path


async def test_spend_and_exports_are_there(program: httpx.AsyncClient, waiting: str) -> None:
    """The same figures and documents as from the command line."""
    (line,) = (await program.get("/api/v1/spend")).json()["lines"]
    formats = (await program.get("/api/v1/exports")).json()
    document = await program.get(f"/api/v1/runs/{waiting}/exports/json")

    assert (line["agent"], line["runs"], line["usd"]) == ("claude", 1, 0.0)
    assert "json" in formats
    assert document.headers["content-type"].startswith("text/plain")
    missing = await program.get(f"/api/v1/runs/{waiting}/exports/nothing")
    assert missing.status_code == 404
