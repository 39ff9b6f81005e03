import asyncio
from typing import Any

import httpx
import pytest

from signoff.app.history import FollowedRuns
from signoff.app.project import Project
from signoff.core.requests import Approval
from signoff.mcp.replies import part_of_run
from signoff.web.views.request import RequestPage, request_page
from tests.unit.web.page_reader import PageReader
from tests.unit.web.review_project import work
from tests.unit.web.views.test_request import waiting as ask


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
