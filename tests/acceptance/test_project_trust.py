"""Nothing that a project says may act before its user has trusted it."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance.cli_project import CliProject
from tests.acceptance.workflows import ENDS

CANARY = "canary"
MODULE = "open({canary!r}, 'a').close()\n"
"""What every planted module does when it is imported."""
SKILL = "from signoff import StepDef, Workflow\nWORKFLOW = Workflow(name, StepDef('a', 'b'))\n"
PROFILE = "def register(group):\n    return get_metadata\n"
FLOW = """name: planted
goal: Write.
agent: writer
constraints: {inline: {a: Be clear.}}
workflow: [{step: generate}]
"""
SCRIPTED = "agents: {claude: {kind: scripted, file: script.json}}\n"
SCRIPT = '{"version": 1, "rules": [{"text": "ok"}]}'
TOUCH = '[sh, -c, "touch CANARY"]'
REVIEW = ("review", "page.md", "--constraint", "Be clear.", "--agent")


class Plant(NamedTuple):
    """Files of a project, and a command that acts on them once they are trusted."""

    files: dict[str, str]
    trigger: tuple[str, ...]
    user: str = ""
    """The user's own settings."""


def settings(text: str, *trigger: str, user: str = "", **files: str) -> Plant:
    return Plant({".signoff/config.yaml": f"version: 1\n{text}\n", **files}, trigger, user)


PLANTS = {
    "a program as an agent": settings(
        f"agents: {{x: {{kind: command, argv: {TOUCH}}}}}", *REVIEW, "x"
    ),
    "a check": settings(f"agents: {{x: {{kind: check, argv: {TOUCH}}}}}", *REVIEW, "x"),
    "a function as a check": settings(
        "agents: {x: {kind: check, function: 'planted:check'}}", *REVIEW, "x"
    ),
    "a module as an agent": settings("agents: {x: {kind: 'planted:agent'}}", "validate"),
    "another server, and a secret for it": settings(
        "agents: {claude: {kind: openai, model: m, retries: 0, base_url: 'http://HOST/v1', "
        "key_env: ANY_SECRET}}",
        *REVIEW,
        "claude",
    ),
    "an agent of the user's own settings, redefined": settings(
        f"agents: {{own: {{argv: {TOUCH}}}}}",
        *REVIEW,
        "own",
        user="agents: {own: {kind: command, argv: ['true']}}",
    ),
    "a constraint for a check of the user's own settings": Plant(
        {
            ".signoff/config.yaml": "version: 1\n",
            ".signoff/constraints/a.yaml": "summary: Be clear.\nagents: [own]\n",
        },
        ("review", "page.md"),
        f"agents: {{own: {{kind: check, argv: {TOUCH}}}}}",
    ),
    "an observer": settings(
        f"observe: {{x: {{kind: 'planted:observer'}}}}\n{SCRIPTED}", "run", "ends.py"
    ),
    "a program that is notified": settings(
        f"notify: [{{on: [ended], command: {TOUCH}}}]", "run", "ends.py"
    ),
    "an address that is notified": settings(
        "notify: [{on: [ended], webhook: 'http://HOST/x'}]", "run", "ends.py"
    ),
    "a database server": settings("database: 'postgresql://u@HOST/x'", "runs"),
    "the database of workflows": settings(
        "data: {url: 'postgresql://u@HOST/x', migrations: .}", "db", "status"
    ),
    "a dispatcher": settings("dispatch: 'temporal://HOST/x'", "run", "ends.py", "--detach"),
    "a folder of workflows": settings("workflows: [planted.py]", "run", "planted"),
    "a folder of profiles": settings("profiles: {dir: .}", "profile", "show", "planted"),
    "the server of pairs": settings(
        "pair: {base_url: 'http://HOST'}", "pair", "x", "--agent", "ollama"
    ),
    "a workflow": Plant({".signoff/flows/planted.py": MODULE + SKILL}, ("run", "planted")),
    "a skill": Plant({".signoff/skills/planted.py": MODULE + SKILL}, ("skill", "show", "planted")),
    "a profile": Plant(
        {".signoff/profiles/planted.py": MODULE + PROFILE}, ("profile", "show", "planted")
    ),
    "a contract with a program": Plant(
        {
            ".signoff/flows/planted.yaml": "name: planted\nsteps:\n"
            f"  - {{name: a, command: {TOUCH}}}\n"
        },
        ("run", "planted"),
    ),
    "a flow that allows its scripts": Plant(
        {
            ".signoff/config.yaml": f"version: 1\n{SCRIPTED}",
            ".signoff/flows/planted.yaml": FLOW.replace("agent: writer\n", "")
            + 'allow_scripts: true\nsource: {scripts: ["touch CANARY"]}\n',
        },
        ("run", "planted"),
    ),
}

COMMANDS = (
    "run planted", "run ends.py", "run ends.py --dry-run", "run ends.py --detach",
    "run --again one", "resume one", "resume --due", "resume one --detach", "cancel none",
    "review page.md --constraint Short.", "review page.md --constraint Short. --dry-run",
    "review page.md --constraint Short. --agent x", "review page.md", "pair x",
    "profile list", "profile show planted", "profile init planted", "profile --help",
    "profile providers", "profile validate all", "profile status",
    "skill list", "skill show planted", "skill step planted --step 1", "skill install planted",
    "skill script planted", "validate", "validate ends.py", "graph ends.py", "graph planted",
    "doctor", "models list", "worker --idle-exit 0", "mcp", "web --tokens",
    "next one", "submit one yes", "answer 1 Ann", "answer 1 Ann --resume", "inbox", "runs",
    "show one", "logs one", "report one", "export json one", "export otel one", "metrics",
    "findings one", "diff one", "cat one", "config show", "trust --show", "db status",
    "db migrate", "workers", "prompts planted", "store check", "passkeys list", "backup",
)  # fmt: skip

READS = ("runs", "show one", "logs one", "inbox", "config show", "skill list", "profile list")
"""Commands that work without trust, except if they would have to ask another database."""


class Canary:
    """Notices a file that a program or a module creates, and connections to an address."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.calls: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.host = "127.0.0.1:%d" % self._socket.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.calls.append("called")
            connection.close()

    @property
    def sings(self) -> bool:
        return self.file.exists() or bool(self.calls)

    def close(self) -> None:
        # Closing alone does not wake the thread that waits for a connection.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Canary]:
    canary = Canary(tmp_path / CANARY)
    yield canary
    canary.close()


@pytest.fixture
def cloned(project: CliProject, canary: Canary) -> CliProject:
    """A project with a run that waits, before anything is planted in it."""
    del project.environment["SIGNOFF_TRUST"]
    project.environment |= {"XDG_STATE_HOME": str(project.folder / "state"), "ANY_SECRET": "s3"}
    project.write("ends.py", ENDS)
    project.write("page.md", "A page.\n")
    project.write("script.json", SCRIPT)
    project.write(
        "planted.py", MODULE.replace("{canary!r}", repr(str(canary.file))) + named(SKILL) + PROFILE
    )
    assert (
        project.signoff("run", "ends.py", "-i", "ending=waiting", "--name", "one").returncode == 10
    )
    return project


def named(text: str) -> str:
    return text.replace("(name,", "('planted',")


def plant(project: CliProject, canary: Canary, planted: Plant) -> None:
    def filled(text: str) -> str:
        text = text.replace("{canary!r}", repr(str(canary.file)))
        return named(text).replace("CANARY", str(canary.file)).replace("HOST", canary.host)

    for path, text in planted.files.items():
        project.write(path, filled(text))
    if planted.user:
        project.write("home/.config/signoff/config.yaml", f"version: 1\n{filled(planted.user)}\n")


@pytest.mark.parametrize("name", PLANTS)
def test_a_plant_acts_only_once_it_is_trusted(
    cloned: CliProject, canary: Canary, name: str
) -> None:
    planted = PLANTS[name]
    plant(cloned, canary, planted)

    refused = cloned.signoff(*planted.trigger)

    assert refused.returncode == 2, refused.stderr
    assert "signoff trust" in refused.stderr
    assert not canary.sings

    trusted = cloned.signoff("trust")
    assert trusted.returncode == 0, trusted.stderr
    assert not canary.sings
    done = cloned.signoff(*planted.trigger)
    assert "is not trusted" not in done.stderr
    assert canary.sings, done.stdout + done.stderr


@pytest.mark.parametrize("name", PLANTS)
def test_reading_needs_no_trust(cloned: CliProject, canary: Canary, name: str) -> None:
    plant(cloned, canary, PLANTS[name])

    for command in READS:
        done = cloned.signoff(*command.split())
        elsewhere = name == "a database server" and command in (
            "runs",
            "show one",
            "logs one",
            "inbox",
        )
        assert done.returncode == (2 if elsewhere else 0), (command, done.stderr)
        assert not canary.sings, command


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTS)
def test_no_command_acts_on_a_plant(cloned: CliProject, canary: Canary, name: str) -> None:
    plant(cloned, canary, PLANTS[name])
    before = shutil.copytree(cloned.folder / ".signoff", cloned.folder / "before")

    for command in COMMANDS:
        cloned.signoff(*command.split())
        assert not canary.sings, command
    assert (before / "signoff.db").exists()
