"""A project under review may have a file that is called like a library; no command imports it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from click import Context

from signoff.surfaces.cli.entry import COMMANDS, signoff
from tests.acceptance.cli_project import ENVIRONMENT, PROGRAM
from tests.patience import PATIENCE_SECONDS

NOT_INSTALLED = (
    *("xllamacpp", "brotli", "brotlicffi", "zstandard", "h2", "socksio", "uvloop", "httptools"),
    *("chardet", "colorama", "IPython", "email_validator", "simplejson", "sniffio", "trio"),
    *("watchfiles", "wsproto", "websockets", "dotenv", "gunicorn", "yaml", "numpy", "pandas"),
    *(
        "sitecustomize",
        "usercustomize",
        "resources",
        "ruamel_yaml",
        "aiohttp",
        "boto3",
        "mypy_boto3",
    ),
)
"""What libraries use if it is there; a project could bring it."""

PLANT = """
from pathlib import Path
Path(__file__).with_suffix(".ran").touch()
raise SystemExit(0)
"""

SETTINGS = """version: 1
agents:
  anthropic: {{kind: anthropic, model: m, base_url: "{url}", key_env: A_KEY}}
  openai: {{kind: openai, model: m, base_url: "{url}", key_env: A_KEY}}
  ollama: {{kind: ollama, model: m, base_url: "{url}"}}
"""

ARGUMENTS: dict[str, Sequence[Sequence[str]]] = {
    "review": [
        ("README.md", "--preset", "docs"),
        *(("README.md", "--preset", "docs", "--agent", each) for each in ("openai", "ollama")),
        ("README.md", "--preset", "docs", "--agent", "local"),
        ("README.md", "--diff", "main", "--preset", "docs", "--agent", "anthropic"),
    ],
    "init": [("--preset", "review")],
    "validate": [()],
    "graph": [("docs",)],
    "run": [("docs", "--goal", "docs-goal.yaml", "--no-input")],
    "resume": [("one",)],
    "cancel": [("one",)],
    "worker": [("--help",)],
    "workers": [()],
    "runs": [()],
    "show": [("one",)],
    "findings": [("one",)],
    "diff": [("one",)],
    "cat": [("one",)],
    "report": [("one", "-o", "report.html")],
    "logs": [("one",)],
    "export": [("sarif", "one"), ("otel", "one"), ("markdown", "one")],
    "metrics": [()],
    "policy": [("explain", "one")],
    "inbox": [()],
    "answer": [("1", "retry")],
    "approve": [("1",)],
    "reject": [("1",)],
    "web": [("--link",), ("--token", "--name", "me")],
    "passkeys": [("list",)],
    "dismiss": [("f1", "--why", "because")],
    "next": [("one",)],
    "submit": [("one",)],
    "mcp": [(), ("install", "claude", "--print")],
    "demo": [("--no-input",)],
    "models": [("list",)],
    "backup": [("copy.db",)],
    "store": [("setup", "--print")],
    "config": [()],
    "trust": [("--show",)],
    "doctor": [("-v",)],
    "db": [("--help",)],
    "profile": [("list",), ("show", "python-module")],
    "skill": [("list",), ("step", "decision-critic", "--step", "1")],
    "pair": [("a slogan", "--agent", "openai")],
}


class _Refusal(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_error(400)

    do_GET = do_POST  # noqa: N815  # http.server prescribes the name

    def log_message(self, *_arguments: object) -> None:
        """Is quiet."""


@pytest.fixture
def vendor() -> Iterator[str]:
    """The address of a server that refuses every request at once."""
    with HTTPServer(("127.0.0.1", 0), _Refusal) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def planted(tmp_path: Path, vendor: str) -> Path:
    """A project with a module named like each library, installed or not."""
    folder = tmp_path / "project"
    (folder / ".signoff").mkdir(parents=True)
    (folder / ".signoff/config.yaml").write_text(SETTINGS.format(url=vendor))
    (folder / "README.md").write_text("A page.\n")
    names = {*packages_distributions(), *NOT_INSTALLED, *sys.stdlib_module_names} - {"signoff"}
    for name in names:
        if name.isidentifier() and not name.startswith("_"):
            (folder / f"{name}.py").write_text(PLANT)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    subprocess.run(["git", "add", ".signoff"], cwd=folder, check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, "commit", "-qm", "first"], cwd=folder, check=True)
    return folder


def run(folder: Path, program: Sequence[str], *arguments: str) -> str:
    home = str(folder.parent / "home")
    more = {"HOME": home, "A_KEY": "x", "SIGNOFF_TRUST": "1"}
    environment = {**ENVIRONMENT, **more, "PATH": f"{Path(PROGRAM).parent}:{os.defpath}"}
    done = subprocess.run(
        [*program, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    return done.stdout + done.stderr


def ran(folder: Path) -> list[str]:
    return sorted(each.stem for each in folder.glob("*.ran"))


def test_a_review_imports_nothing_of_what_it_reviews(planted: Path) -> None:
    output = run(planted, [PROGRAM], "review", "README.md", "--preset", "docs", "--agent", "openai")

    assert "400" in output
    assert ran(planted) == []


@pytest.mark.slow
def test_no_command_imports_a_module_of_the_project(planted: Path) -> None:
    assert {*ARGUMENTS} == {*COMMANDS, *signoff.list_commands(Context(signoff))}
    run(planted, [PROGRAM], "init", "--preset", "docs")
    run(planted, [PROGRAM], "review", "README.md", "--name", "one", "--no-input")
    lines = [(name, *line) for name, lines in ARGUMENTS.items() for line in lines]

    with ThreadPoolExecutor(2) as pool:
        [*pool.map(lambda line: run(planted, [PROGRAM], *line), lines)]

    assert ran(planted) == []


@pytest.mark.slow
def test_python_m_signoff_imports_no_library_from_the_current_folder(planted: Path) -> None:
    for name in sys.stdlib_module_names:  # Python itself imports some of these
        (planted / f"{name}.py").unlink(missing_ok=True)

    output = run(
        planted,
        [sys.executable, "-m", "signoff"],
        *("review", "README.md", "--preset", "docs", "--agent", "openai"),
    )

    assert "400" in output
    assert ran(planted) == []
