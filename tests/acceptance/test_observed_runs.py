"""A run of three processes whose true numbers are known, as metrics and traces report it."""

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.cli_project import CliProject

WORKFLOW = """\
import os
import signal
from pathlib import Path

from signoff import Outcome, Question, StepContext, StepDef, Workflow


async def draft(ctx: StepContext):
    reply = await ctx.ask("writer", "a secret prompt", key="draft")
    if not Path("killed").exists():
        Path("killed").touch()
        await ctx.command(["kill", "-9", str(os.getpid())], key="kill", on_crash="rerun")
    return Outcome.OK, {"draft": reply.text}


async def sign(ctx: StepContext):
    answer = await ctx.wait(Question("Ship it?"))
    await ctx.ask("unpriced", "another secret prompt", key="check")
    return Outcome.OK, {"answer": answer.value}


WORKFLOW = Workflow(
    "report",
    StepDef("draft", handler=draft, next={Outcome.OK: "sign"}),
    StepDef("sign", handler=sign, next={Outcome.OK: None}),
)
"""

AGENTS = '''\
from signoff.core.effects import Reply
from signoff.core.spend import Usage
from signoff.runtime.ports import Capabilities


class Model:
    """Answers at a known price, or at an unknown one."""

    capabilities = Capabilities(provider="example", chat=True)

    def __init__(self, *, priced=True):
        self.priced = priced

    async def ask(self, request, call):
        usage = Usage(100, 20, 0.25, "large-1") if self.priced else None
        return Reply("a secret reply", usage=usage)
'''

SETTINGS = """\
version: 1
agents:
  writer: {{kind: "models:Model"}}
  unpriced: {{kind: "models:Model", priced: false}}
observe:
  otel: {{endpoint: "{address}"}}
"""


class Collector(ThreadingHTTPServer):
    """Takes traces as a collector of OpenTelemetry does."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: set[str] = set()
        self.texts = b""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        collector = self.server
        assert isinstance(collector, Collector)
        collector.texts += body
        if self.path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    collector.spans |= {span.span_id.hex() for span in scope.spans}
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as its base has it
        """Prints nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def driven(project: CliProject, collector: Collector) -> CliProject:
    """The project with the run: the first process is killed, the second waits, the third ends."""
    project.write("report.py", WORKFLOW)
    project.write("models.py", AGENTS)
    assert project.signoff("init").returncode == 0
    project.write(".signoff/config.yaml", SETTINGS.format(address=collector.address))
    run = project.signoff(
        "run", "report.py", "--name", "known", "--no-input", PYTHONPATH=str(project.folder)
    )
    assert run.returncode == -9, run.stderr
    resumed = project.signoff("resume", "known", "--no-input")
    assert resumed.returncode == 10, resumed.stderr
    done = project.signoff("answer", "known", "yes", "--resume", "--no-input")
    assert done.returncode == 0, done.stderr
    return project


def test_metrics_and_traces_are_true_over_three_processes(
    driven: CliProject, collector: Collector
) -> None:
    """They are computed from the journal, so neither a kill nor a resume changes them."""
    numbers = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(driven.signoff("metrics").stdout)
        for sample in family.samples
    }
    exported = driven.signoff("export", "otel", "known")
    again = driven.signoff("export", "otel", "known")

    assert numbers["workflow_runs_total", "completed"] == 1
    assert numbers["signoff_effects_total", "ask", "ok", "writer"] == 1
    assert numbers["signoff_effects_total", "ask", "ok", "unpriced"] == 1
    assert numbers["signoff_effects_total", "", "command", "lost"] == 1
    assert numbers["signoff_spend_usd_total", "large-1", "writer"] == 0.25
    assert numbers["signoff_tokens_total", "large-1", "writer"] == 120
    assert numbers["signoff_spend_unknown_total", "", "unpriced"] == 1
    assert ("signoff_spend_usd_total", "", "unpriced") not in numbers
    assert exported.stdout == again.stdout
    assert spans_of(exported.stdout) == collector.spans
    assert b"secret" not in collector.texts
    assert "secret" not in exported.stdout


def spans_of(lines: str) -> set[str]:
    """Returns the ids of the spans of an export, which follow from the journal."""
    document = json.loads(lines.splitlines()[0])
    (scope,) = document["resourceSpans"][0]["scopeSpans"]
    return {span["spanId"] for span in scope["spans"]}
