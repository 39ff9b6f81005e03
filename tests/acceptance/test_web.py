"""The real `signoff web` in a process of its own; most of the server is tested in process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.acceptance.cli_project import CliProject, worker_for_server
from tests.patience import wait_until
from tests.run_stores import store_variables
from tests.unit.surfaces.web.review_project import TARGET, write_project

WEB = [sys.executable, "-m", "signoff", "web"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path)
    for name in [name for name in os.environ if name.startswith("SIGNOFF_")]:
        monkeypatch.delenv(name)
    for name, value in store_variables().items():
        monkeypatch.setenv(name, value)
    return tmp_path


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [*WEB, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@contextmanager
def server(folder: Path, ending: signal.Signals = signal.SIGINT) -> Iterator[dict[str, str]]:
    """Serves a project until the end of the block; gives its address and a login link."""
    command = [*WEB, "--port", "0", "--json"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read().decode()
            yield {**json.loads(line), "pid": str(process.pid)}
        finally:
            process.send_signal(ending)
            log = process.stderr.read().decode()
    if ending is signal.SIGINT:
        assert process.returncode == 0, log
    assert "Traceback" not in log


def test_a_session_outlives_the_server_and_its_link_works_once(folder: Path) -> None:
    """Killed or stopped, the next server knows who is logged in."""
    with httpx.Client(trust_env=False, follow_redirects=True) as browser:
        with server(folder, signal.SIGKILL) as first:
            assert browser.get(first["link"]).status_code == 200
            assert httpx.get(first["link"], trust_env=False).status_code == 401
        with server(folder) as second:
            # Browsers send a host's cookies to all of its ports.
            assert browser.get(second["url"]).status_code == 200
            again = json.loads(run(folder, "--link", "--json").stdout)
            assert again["url"] == second["url"]
            assert httpx.get(again["link"], trust_env=False).status_code == 303
            token = run(folder, "--token", "--name", "script", "--scope", "read").stdout.strip()
            headers = {"authorization": f"Bearer {token}"}
            runs = f"{second['url']}/api/v1/runs"
            assert httpx.get(runs, headers=headers, trust_env=False).json()["runs"] == []
            assert run(folder, "--revoke", "script").returncode == 0
            assert httpx.get(runs, headers=headers, trust_env=False).status_code == 401


def test_an_open_stream_does_not_keep_the_server_from_stopping(folder: Path) -> None:
    """Every open page has one."""
    with httpx.Client(trust_env=False, timeout=60) as client:
        with server(folder) as serving:
            client.get(serving["link"])
            stream = client.stream("GET", f"{serving['url']}/api/v1/events")
            response = stream.__enter__()
            assert next(response.iter_text()).startswith("retry:")
        stream.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--allow-host"),
        (["--host", "0.0.0.0", "--allow-host", "build.example"], "--token"),
        (["--token", "--agent", "--scope", "decide"], "only humans decide"),
        (["--revoke", "nobody"], "unknown token"),
        (["--link"], "not being served"),
    ],
)
def test_what_would_be_unsafe_is_refused(folder: Path, options: list[str], words: str) -> None:
    """With what to do instead."""
    refused = run(folder, *options)

    assert refused.returncode == 2
    assert words in refused.stderr


@pytest.mark.both_stores
def test_a_run_outlives_the_server_that_started_it(project: CliProject) -> None:
    """A worker drives it; the server is only where it was asked for."""
    write_project(project.folder)
    token = project.signoff("web", "--token", "--name", "ann", "--scope", "decide").stdout.strip()
    headers = {"authorization": f"Bearer {token}"}
    serving = project.start("web", "--port", "0", "--json")
    assert serving.stdout is not None
    api = f"{json.loads(serving.stdout.readline())['url']}/api/v1"

    body = {"target": TARGET, "name": "first"}
    started = httpx.post(f"{api}/runs", json=body, headers=headers, trust_env=False, timeout=60)
    serving.kill()
    serving.wait()
    with worker_for_server(project.folder, project.environment):
        wait_until(lambda: project.json("show", "first")["status"] == "waiting", "status waiting")
        workers = project.json("workers")

    assert started.status_code == 201, started.text
    assert len(workers) == 1
