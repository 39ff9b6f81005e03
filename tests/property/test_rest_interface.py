"""Requests made from the description of the REST interface, valid and not: no one breaks it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signoff.app.runs.start import plan
from signoff.app.workers.hand_over import hand_over
from signoff.store.sqlite import MemoryStore
from signoff.surfaces.web.access import Access, AccessScope
from signoff.surfaces.web.server import create_app
from tests.unit.surfaces.web.review_project import TARGET, review_project, work

pytestmark = pytest.mark.slow

BASE = "http://127.0.0.1:8717"
STREAMS = {"stream_events", "stream_run_events"}
"""These never end; tests of their own read them."""
OPERATIONS = [
    "answer_request", "cancel_run", "export_run", "get_artifact", "get_request", "get_run",
    "get_spend", "get_workflow", "list_diffs", "list_events", "list_findings", "list_formats",
    "list_requests", "list_runs", "list_workflows", "resume_run", "start_run",
]  # fmt: skip


class RestServer:
    """The server of a project with one review that waits."""

    def __init__(self, folder: Path) -> None:
        self._context = review_project(folder, MemoryStore())
        self.project = self._context.__enter__()
        hand_over(self.project, plan(folder, {}, TARGET, {}), name="first")
        asyncio.run(work(self.project, "first"))
        self.access = Access.of(self.project.home)
        self.app = create_app(self.project, self.access)
        token = self.access.new_token("fuzz", AccessScope.DECIDE)
        self.headers = {"Authorization": f"Bearer {token}"}

    def send(self, case: Any) -> httpx.Response:
        """Sends a request as it was made up, except that it is authorized."""
        made = requests.Request(**case.as_transport_kwargs(base_url=BASE)).prepare()
        headers = {**{name: str(value) for name, value in made.headers.items()}, **self.headers}
        body: Any = made.body

        async def sent() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app)) as client:
                return await client.request(
                    made.method or "", made.url or "", headers=headers, content=body
                )

        return asyncio.run(sent())

    def close(self) -> None:
        self.app.feed.close()
        self.access.close()
        self._context.__exit__(None, None, None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SIGNOFF_HOME", raising=False)
        folder = tmp_path_factory.mktemp("rest")
        patch.chdir(folder)
        opened = RestServer(folder)
        yield opened
        opened.close()


def test_every_operation_is_attacked(server: RestServer) -> None:
    """One that is added later must be added to the list above."""
    paths = server.app.routes.openapi()["paths"]
    found = {each["operationId"] for operations in paths.values() for each in operations.values()}

    assert found == STREAMS | {*OPERATIONS}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_makes_the_server_fail(server: RestServer, name: str) -> None:
    """Whatever a client sends, it gets an answer that the description promises."""
    import schemathesis
    from schemathesis import checks
    from schemathesis.specs.openapi import checks as openapi_checks

    promised = [
        checks.not_a_server_error,
        openapi_checks.status_code_conformance,
        openapi_checks.content_type_conformance,
        openapi_checks.response_schema_conformance,
    ]
    schema = schemathesis.openapi.from_dict(server.app.routes.openapi())
    operation = schema.find_operation_by_id(name)
    modes = schemathesis.GenerationMode
    cases = st.one_of(
        operation.as_strategy(generation_mode=modes.POSITIVE),
        operation.as_strategy(generation_mode=modes.NEGATIVE),
    )

    @settings(max_examples=25, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(case=cases, known=st.booleans())
    def attack(case: Any, known: bool) -> None:
        if known:
            # A name that was made up leads nowhere; what is there has more to break.
            values = {"run": "first", "number": 1, "format": "json", "target": TARGET}
            for part in (case.path_parameters, case.query, case.body):
                if isinstance(part, dict):
                    part.update({each: values[each] for each in values.keys() & part.keys()})
        case.validate_response(server.send(case), checks=promised)

    attack()
