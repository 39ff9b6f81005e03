import asyncio

import httpx
import pytest

from signoff.app.project import Project
from signoff.web.access import Access, AccessScope
from tests.unit.web.review_project import TARGET

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
    from signoff.web.api import routes

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
