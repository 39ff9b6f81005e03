import asyncio
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from signoff.app.runs.history import FollowedRuns
from signoff.app.settings.project import Project
from signoff.core.requests import Approval
from signoff.surfaces.mcp.tools import part_of_run
from signoff.surfaces.web.access import Access, AccessScope
from signoff.surfaces.web.server import PageApp
from signoff.surfaces.web.views.request import RequestPage, request_page
from tests.unit.surfaces.web.page_reader import PageReader
from tests.unit.surfaces.web.review_project import TARGET, work
from tests.unit.surfaces.web.views.test_request import waiting as ask


async def shown(program: httpx.AsyncClient) -> dict[str, object]:
    """Returns the only pending request."""
    (line,) = (await program.get("/api/v1/inbox")).json()
    document: dict[str, object] = (await program.get(f"/api/v1/inbox/{line['number']}")).json()
    return document


async def test_a_sign_off_is_recorded_with_its_author_and_ends_the_run(
    project: Project, program: httpx.AsyncClient, waiting: str
) -> None:
    """That is what the interface is for."""
    request = await shown(program)
    body = {"digest": request["digest"], "value": True, "text": "Fine."}

    answered = await program.post(f"/api/v1/inbox/{request['number']}/answer", json=body)
    await work(project, waiting)

    assert answered.status_code == 200, answered.text
    answer = answered.json()["answer"]
    assert (answer["value"], answer["by"], answer["text"]) == ("approve", "script", "Fine.")
    assert (await program.get(f"/api/v1/runs/{waiting}")).json()["status"] == "completed"


async def test_an_answer_to_something_else_is_refused(
    program: httpx.AsyncClient, waiting: str
) -> None:
    """An approval counts for exactly what the approver saw."""
    request = await shown(program)
    body = {"digest": "0" * 64, "value": True}

    refused = await program.post(f"/api/v1/inbox/{request['number']}/answer", json=body)

    assert (refused.status_code, refused.json()["kind"]) == (412, "StaleApproval")
    assert (await shown(program))["state"] == "open"


async def test_a_repeated_answer_with_the_same_key_is_no_second_answer(
    program: httpx.AsyncClient, waiting: str
) -> None:
    """A client that lost the reply can only send its request again."""
    request = await shown(program)
    path = f"/api/v1/inbox/{request['number']}/answer"
    body = {"digest": request["digest"], "value": True, "resume": False}
    headers = {"idempotency-key": "a"}

    first = await program.post(path, json=body, headers=headers)
    again = await program.post(path, json=body, headers=headers)
    other = await program.post(path, json={**body, "value": False}, headers=headers)

    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json()["answer"] == again.json()["answer"]
    assert (other.status_code, other.json()["kind"]) == (422, "KeyReused")


async def test_answers_with_one_key_at_once_are_one_answer(
    program: httpx.AsyncClient, waiting: str
) -> None:
    """A client that sends again does not wait for the reply to what it sent first."""
    request = await shown(program)
    path = f"/api/v1/inbox/{request['number']}/answer"
    body = {"digest": request["digest"], "value": True, "resume": False}

    sent = (program.post(path, json=body, headers={"idempotency-key": "a"}) for _ in range(9))
    replies = await asyncio.gather(*sent)

    assert {each.status_code for each in replies} == {200}
    assert len({each.text for each in replies}) == 1


@pytest.mark.parametrize(
    "wrong", [{"value": 1}, {"value": 1.0}, {"value": "true"}, {"digest": "its first 11"}]
)
async def test_only_true_with_enough_of_the_digest_approves(
    program: httpx.AsyncClient, waiting: str, wrong: dict[str, Any]
) -> None:
    """An approval is bound to what was shown; a script may fill in any number."""
    request = await shown(program)
    if "digest" in wrong:
        wrong = {"digest": str(request["digest"])[:11]}
    body = {"digest": request["digest"], "value": True, "resume": False, **wrong}

    refused = await program.post(f"/api/v1/inbox/{request['number']}/answer", json=body)

    assert refused.status_code == 422
    assert (await shown(program))["number"] == request["number"]


async def test_an_unknown_request_is_not_found(program: httpx.AsyncClient) -> None:
    """And a number that no database has is no error of the server."""
    assert (await program.get("/api/v1/inbox/99")).status_code == 404
    assert (await program.get(f"/api/v1/inbox/{10**17}")).status_code == 404
    assert (await program.get(f"/api/v1/inbox/{10**30}")).status_code == 422


async def test_a_program_rejects_but_never_approves_what_needs_a_signature(
    project: Project, program: httpx.AsyncClient
) -> None:
    """A token of any scope is no human; the problem says where to sign."""
    await ask(project, Approval("Ship?", "the text", presence=True))
    request = await shown(program)
    address, body = f"/api/v1/inbox/{request['number']}/answer", {"digest": request["digest"]}

    refused = await program.post(address, json={**body, "value": True})
    rejected = await program.post(address, json={**body, "value": False, "resume": False})

    assert (refused.status_code, refused.json()["kind"]) == (422, "PresenceRequired")
    assert refused.json()["remedies"]
    assert rejected.status_code == 200, rejected.text


async def test_every_surface_shows_a_sign_off_the_same(
    project: Project, program: httpx.AsyncClient, waiting: str
) -> None:
    """One value is built from the run's state: REST, MCP and the page only render it."""
    request = await shown(program)

    values = request["shown"]
    assert isinstance(values, dict)
    assert list(values)[:3] == ["open findings", "goal", "constraints"]
    assert values["constraints"] == {"modest": "passed by claude"}
    told = part_of_run(project, waiting, "request", None)
    assert told.index("open findings:\nnone") < told.index("modest: passed by claude")
    with FollowedRuns().look(project, project.store.row(waiting)) as run:
        assert any(line.text == "modest: passed by claude" for line in run.log)
        page = request_page(RequestPage(request=request, now=0.0))
        text = PageReader("".join(page)).text
    assert text.index("Open findings") < text.index("passed by claude") < text.index("The text")


async def test_findings_say_what_became_of_them(program: httpx.AsyncClient, waiting: str) -> None:
    """A program can tell an open finding from a fixed one."""
    path = f"/api/v1/runs/{waiting}/findings"

    everything = (await program.get(path)).json()["findings"]
    still_open = (await program.get(path, params={"status": "open"})).json()["findings"]

    assert [(each["severity"], each["status"]) for each in everything] == [("HIGH", "fixed")]
    assert still_open == []
    assert (await program.get(path, params={"status": "lost"})).status_code == 422
    assert (await program.get(path, params={"constraint": "other"})).status_code == 400


async def test_a_diff_names_the_findings_it_answers(
    program: httpx.AsyncClient, waiting: str
) -> None:
    """That is how an approver knows why a line changed."""
    (change,) = (await program.get(f"/api/v1/runs/{waiting}/diffs")).json()["changes"]
    (finding,) = (await program.get(f"/api/v1/runs/{waiting}/findings")).json()["findings"]

    (hunk,) = change["files"][0]["hunks"]

    assert "+Good coffee." in hunk["diff"]
    assert hunk["findings"] == [finding["id"]]
    missing = await program.get(f"/api/v1/runs/{waiting}/diffs", params={"round": 9})
    assert missing.status_code == 400


async def test_the_artifact_is_the_last_reviewed_version(
    program: httpx.AsyncClient, waiting: str
) -> None:
    """And every earlier one can be had."""
    last = (await program.get(f"/api/v1/runs/{waiting}/artifact")).json()
    first = (await program.get(f"/api/v1/runs/{waiting}/artifact", params={"round": 1})).json()

    assert list(last["files"].values()) == ["Good coffee.\n"]
    assert list(first["files"].values()) == ["The best coffee of the world.\n"]


async def test_a_list_has_pages(project: Project, program: httpx.AsyncClient) -> None:
    """Each names the next."""
    from tests.unit.surfaces.web.review_project import TARGET

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


START = {"target": TARGET, "name": "first"}


async def test_a_workflow_of_the_project_is_listed_with_what_it_takes(
    program: httpx.AsyncClient,
) -> None:
    """A form can be made of it."""
    listed = (await program.get("/api/v1/workflows")).json()
    own = [each for each in listed["workflows"] if each["target"] == TARGET]

    found = await program.get("/api/v1/workflow", params={"target": TARGET})

    assert [each["own"] for each in own] == [True]
    assert "goal" in {each["name"] for each in found.json()["options"]}
    assert [each["id"] for each in found.json()["graph"]["steps"]][:2] == ["draft", "review"]


@pytest.mark.parametrize("target", ["slogan", f"./{TARGET}", "review"])
async def test_a_workflow_is_started_by_its_name_too(
    project: Project, program: httpx.AsyncClient, target: str
) -> None:
    """`signoff run` and MCP take the name."""
    (project.home.root / "a.md").write_text("It always works.\n")
    options = {"paths": ["a.md"], "constraint": ["tone: Promise nothing."]}
    body = {"target": target, "options": options if target == "review" else {}}

    started = await program.post("/api/v1/runs", json=body)

    assert started.status_code == 201, started.text
    assert started.json()["target"] == ("review:files" if target == "review" else TARGET)


async def test_starts_with_one_key_at_once_start_one_run(
    project: Project, program: httpx.AsyncClient
) -> None:
    """A client that is impatient sends its request again while the first is answered."""
    headers, body = {"idempotency-key": "once"}, {"target": TARGET}

    sent = [program.post("/api/v1/runs", json=body, headers=headers) for _ in range(12)]
    answers = await asyncio.gather(*sent)

    assert sorted(each.status_code for each in answers) == [*[200] * 11, 201]
    assert len(project.store.rows()) == 1


async def test_a_start_that_was_killed_in_between_happens_once(
    project: Project, program: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is recorded first, with the name; the repeated request starts that run."""
    from signoff.surfaces.web.api import routes

    def killed(*_arguments: object, **_options: object) -> None:
        raise SystemExit

    headers, body = {"idempotency-key": "once"}, {"target": TARGET}
    with monkeypatch.context() as patch:
        patch.setattr(routes, "hand_over", killed)
        with pytest.raises(SystemExit):
            await program.post("/api/v1/runs", json=body, headers=headers)

    again = await program.post("/api/v1/runs", json=body, headers=headers)
    third = await program.post("/api/v1/runs", json=body, headers=headers)

    assert (again.status_code, third.status_code) == (201, 200)
    assert [row.name for row in project.store.rows()] == [again.json()["run"]]


async def test_a_name_that_is_taken_is_refused_even_with_a_key(
    program: httpx.AsyncClient,
) -> None:
    """The caller would take the run of someone else for its own."""
    await program.post("/api/v1/runs", json=START)

    refused = await program.post("/api/v1/runs", json=START, headers={"idempotency-key": "x"})
    again = await program.post("/api/v1/runs", json=START, headers={"idempotency-key": "x"})

    assert (refused.status_code, refused.json()["kind"]) == (409, "NameTaken")
    assert again.status_code == 409


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "evil.py", "os:system", "../x.yaml", "", "flow:../../x"]
)
async def test_only_a_workflow_of_the_list_can_be_started(
    project: Project, program: httpx.AsyncClient, target: str
) -> None:
    """Any other target would let a token run any code on this machine."""
    (project.home.root / "evil.py").write_text("raise SystemError('it was run')")

    refused = await program.post("/api/v1/runs", json={"target": target})

    assert (refused.status_code, refused.json()["kind"]) == (404, "UnknownName")
    assert project.store.rows() == []


@pytest.mark.parametrize(
    "body",
    [
        {"options": {"goal": "/etc/passwd"}},
        {"options": {"goal": "../../etc/passwd"}},
        {"options": {"goal": "\u0000"}},
        {"options": {"unknown": "x"}},
        {"limits": {"usd": -1}},
        {"limits": {"pigs": 1}},
        {"params": {"unknown": 1}},
        {"name": "../x"},
        {"surprise": 1},
    ],
)
async def test_what_does_not_fit_is_refused_before_anything_is_written(
    project: Project, program: httpx.AsyncClient, body: dict[str, object]
) -> None:
    """With a problem that says what is wrong."""
    refused = await program.post("/api/v1/runs", json={"target": TARGET, **body})

    assert refused.status_code in (400, 422), refused.text
    assert refused.json()["detail"]
    assert project.store.rows() == []


async def test_an_agent_may_start_but_not_extend_what_a_run_may_do(
    access: Access, stranger: httpx.AsyncClient
) -> None:
    """Scripts of a flow run only if a human allowed them."""
    token = access.new_token("bot", AccessScope.OPERATE, agent=True)
    stranger.headers["authorization"] = f"Bearer {token}"
    extended = {"target": TARGET, "options": {"allow_scripts": True}}

    refused = await stranger.post("/api/v1/runs", json=extended)

    assert (refused.status_code, refused.json()["kind"]) == (403, "NotAllowed")
    assert (await stranger.post("/api/v1/runs", json=START)).status_code == 201


BASE = "http://127.0.0.1:8717"


@pytest.fixture
def generated(
    app: PageApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """The client that a program would use, written from the description."""
    from openapi_python_client import generate
    from openapi_python_client.config import Config, ConfigFile, MetaType

    description = tmp_path / "openapi.json"
    description.write_text(json.dumps(app.routes.openapi()))
    name = "generated_signoff_client"
    options = ConfigFile(post_hooks=[], package_name_override=name)
    output = tmp_path / name
    config = Config.from_sources(options, MetaType.NONE, description, "utf-8", True, output)
    assert list(generate(config=config)) == []
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    for module in [each for each in sys.modules if each.startswith(name)]:
        del sys.modules[module]


class TypedClient:
    """Calls operations of the generated client by name, in process."""

    def __init__(self, package: ModuleType, app: PageApp, token: str) -> None:
        self._name = package.__name__
        self._client = package.AuthenticatedClient(base_url=BASE, token=token)
        headers = {"authorization": f"Bearer {token}"}
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE, headers=headers)
        self._client.set_async_httpx_client(http)

    async def call(self, tag: str, operation: str, *arguments: Any, **options: Any) -> Any:
        module = importlib.import_module(f"{self._name}.api.{tag}.{operation}")
        return await module.asyncio(*arguments, client=self._client, **options)

    def model(self, name: str) -> Any:
        return getattr(importlib.import_module(f"{self._name}.models"), name)


@pytest.mark.slow
async def test_a_generated_client_takes_a_review_to_its_sign_off(
    app: PageApp, project: Project, access: Access, generated: ModuleType
) -> None:
    """Start, look, answer, see it end: with nothing but the description."""
    client = TypedClient(generated, app, access.new_token("ann", AccessScope.DECIDE))
    workflows = await client.call("workflows", "list_workflows")
    target = next(each.target for each in workflows.workflows if each.target == TARGET)
    start = client.model("StartDocument")(target=target, name="first")

    run = await client.call("runs", "start_run", body=start, idempotency_key="one")
    assert (run.run, run.status.value) == ("first", "queued")
    await work(project, run.run)
    findings = (await client.call("review", "list_findings", run.run)).findings
    changes = (await client.call("review", "list_diffs", run.run)).changes
    (line,) = await client.call("inbox", "list_requests")
    request = await client.call("inbox", "get_request", line.number)
    answer = client.model("AnswerDocument")(digest=request.digest, value=True, text="Fine.")
    await client.call("inbox", "answer_request", line.number, body=answer)
    await work(project, run.run)
    end = await client.call("runs", "get_run", run.run)
    artifact = await client.call("review", "get_artifact", run.run)

    assert [each.status.value for each in findings] == ["fixed"]
    assert changes[0].files[0].hunks[0].findings == [findings[0].id]
    assert end.status.value == "completed"
    assert end.decisions[0]["by"] == "ann"
    assert (artifact.passed, artifact.approved_by) == (True, "ann")
    assert list(artifact.files.additional_properties.values()) == ["Good coffee.\n"]


def test_the_description_is_complete(app: PageApp) -> None:
    """Authors of clients have nothing else to read."""
    description = app.routes.openapi()
    operations = [each for path in description["paths"].values() for each in path.values()]

    assert description["openapi"].startswith("3.1")
    assert [each["operationId"] for each in operations if not each.get("summary")] == []
    assert [each["operationId"] for each in operations if not each.get("description")] == []
    assert {tag for each in operations for tag in each["tags"]} == {
        each["name"] for each in description["tags"]
    }
    assert all("default" in each["responses"] for each in operations)
