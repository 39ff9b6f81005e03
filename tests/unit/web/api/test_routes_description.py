import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from signoff.app.project import Project
from signoff.web.access import Access, AccessScope
from signoff.web.server import PageApp
from tests.unit.web.review_project import TARGET, work

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
