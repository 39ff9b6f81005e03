import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import signoff
from signoff import Approval, Outcome, StepContext, StepDef, Workflow
from signoff.app.people.answering import request_to_json
from signoff.app.settings.checks import validate
from signoff.app.settings.home import init_home
from signoff.app.settings.project import Project, open_project
from signoff.app.settings.settings import ObserverSettings, Settings

PACKAGE = '''
from signoff.runtime.ports import Recorded


class Watcher:
    """Writes the kinds of events to a file; closes it at the end."""

    def __init__(self, setup, *, file="watched.txt", bad=False):
        if bad:
            raise OSError("the port is in use")
        self.path = setup.folder / file
        self.store = setup.open_store()
        self.lines = []

    def notice(self, notice):
        if isinstance(notice, Recorded):
            row = self.store.row(notice.run)
            assert 0 < notice.seq <= row.head
            self.lines += [event.tag for event in notice.events]

    def close(self):
        self.store.close()
        self.path.write_text("\\n".join([*self.lines, ""]))

'''


async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    ctx.log("hello")
    return Outcome.OK, {}


FLOW = Workflow("flow", StepDef("only", handler=work, next={Outcome.OK: None}))


@pytest.fixture(autouse=True)
def package(tmp_path: Path) -> Iterator[Path]:
    """A package that brings an observer, as installed packages do."""
    search_path = list(sys.path)
    folder = tmp_path / "site"
    about = folder / "toy_observer-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-observer\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[signoff.observers]\nwatcher = toy_observer:Watcher\n")
    (folder / "toy_observer.py").write_text(PACKAGE)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path[:] = search_path
    sys.modules.pop("toy_observer", None)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return init_home(tmp_path / "project", {}).home.path


def configure(home: Path, text: str) -> dict[str, str]:
    (home / "config.yaml").write_text(text)
    return {"SIGNOFF_HOME": str(home), "XDG_CONFIG_HOME": str(home / "nowhere")}


WATCHED = ["run_started", "logged", "step_finished", "run_stopped"]


async def test_an_observer_of_another_package_watches_every_run_of_a_project(home: Path) -> None:
    """It needs no change of signoff: an entry point and a line in the settings."""
    environment = configure(home, "observe:\n  watcher:\n")

    with open_project(home, environment) as project:
        for name in ("one", "two"):
            async with project.engine() as engine:
                await engine.start(FLOW, name=name)
        assert not (home / "watched.txt").exists()

    assert (home / "watched.txt").read_text().split() == WATCHED * 2


@pytest.mark.parametrize("kind", ["watcher", "toy_observer:Watcher"])
def test_a_program_that_opens_a_project_has_its_observers(home: Path, kind: str) -> None:
    """The settings of a project hold for its runs, whoever starts them."""
    configure(home, f"observe: {{mine: {{kind: '{kind}', file: other.txt}}}}")

    signoff.run(FLOW, home=home)

    assert (home / "other.txt").read_text().split() == WATCHED


def test_mistakes_in_the_settings_are_found_before_a_run_starts(home: Path) -> None:
    """A mistyped name would otherwise be noticed when the metrics are missing."""
    environment = configure(
        home,
        "observe:\n  watcher: {fil: x}\n  wacher: {}\n  gone: {kind: 'toy_observer:Gone'}\n",
    )

    (checked,) = validate([], home, environment)

    problems = [str(each).removeprefix(f"{home / 'config.yaml'}:") for each in checked.problems]
    assert problems == [
        "2: observe.watcher: unknown option 'fil' (did you mean 'file'? valid: file, bad)",
        (
            "3: observe.wacher: unknown kind 'wacher' "
            "(kinds: metrics, otel, watcher; or package.module:factory)"
        ),
        "4: cannot load 'toy_observer:Gone': module 'toy_observer' has no attribute 'Gone'",
    ]


@pytest.mark.parametrize("text", ["observe: [watcher]", "observe: {watcher: 3}", "observe: yes"])
def test_another_form_is_reported_with_its_line(home: Path, text: str) -> None:
    """Lists are the second guess of everyone who does not look it up."""
    environment = configure(home, text)

    (checked,) = validate([], home, environment)

    assert "config.yaml:1: observe" in str(checked.problems[0])


def observed(project: Project, **observers: ObserverSettings) -> Project:
    settings = Settings(observe=observers)
    return Project(project.home, settings, project.store, project.cwd, project.clock)


async def test_one_that_cannot_start_is_reported_and_left_out(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    """A port that another run of the project has taken is no reason not to work."""
    with observed(project, bad=ObserverSettings("watcher", {"bad": True})) as broken:
        async with broken.engine() as engine:
            result = await engine.start(FLOW, name="one")

    assert result.ok
    warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warned == ["observe.bad is off, because it could not be started"]


def log_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("settings", "level"),
    [("", "info"), ("log_level: debug\n", "debug"), ("log_level: error\n", "error")],
)
def test_a_log_file_has_what_its_level_admits(home: Path, settings: str, level: str) -> None:
    """Without a level of the user's own, a file has more than the terminal."""
    configure(home, f"log_file: run.log\n{settings}")

    signoff.run(FLOW, {}, home=home, name="one")

    written = log_lines(home / "run.log")
    counts = {"debug": 4, "info": 4, "error": 0}
    assert len(written) == counts[level]
    assert all(line["run"] == "one" and line["workflow"] == "flow" for line in written)
    assert "hello" not in (home / "run.log").read_text()


def test_content_is_logged_if_the_settings_say_so(home: Path) -> None:
    """It is off by default, and on for debugging."""
    configure(home, "log_file: run.log\nlog_content: true\n")

    signoff.run(FLOW, {}, home=home, name="one")

    assert '"text": "hello"' in (home / "run.log").read_text()


def test_a_log_file_in_a_missing_folder_is_reported(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No folder is made for a mistyped path, and the run does not need the file."""
    configure(home, "log_file: logz/run.log\n")

    result = signoff.run(FLOW, home=home)

    assert result.ok
    assert "log_file is off, because it could not be started" in caplog.messages
    assert not (home / "logz").exists()


async def wait(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    await ctx.wait(Approval("Ship it?"))
    return Outcome.OK, {}


WAITS = Workflow("waits", StepDef("only", handler=wait, next={Outcome.OK: None}))


def test_a_notification_has_the_commands_that_answer(home: Path) -> None:
    """An approver copies one of them; they are those that `signoff inbox` shows."""
    got = home / "got.json"
    argv = json.dumps(["tee", str(got)])
    environment = configure(home, f"notify:\n  - on: [waiting]\n    command: {argv}\n")

    signoff.run(WAITS, home=home, name="one")

    with open_project(home, environment) as project:
        (item,) = project.store.items("one")
        expected = request_to_json(project, item)
    (request,) = json.loads(got.read_text())["requests"]
    assert request["text"] == "Ship it?"
    assert request["commands"] == expected["commands"]
    assert request["commands"][0].startswith(f"signoff approve {item.id} ")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            "on: [waiting]",
            "notify[0] is {'on': ['waiting']} (give it either a command or a webhook)",
        ),
        ("on: [waiting], command: [a], webhook: http://x", "give it either a command or a webhook"),
        ("on: [], command: [a]", "notify[0].on is [] (a list of: waiting, ended, parked)"),
        ("on: [done], command: [a]", "notify[0].on[0] is 'done'"),
        ("command: [a]", "notify[0].on is missing (a list of: waiting, ended, parked)"),
        ("on: [ended], command: mail", "notify[0].command is 'mail' (a list: the program"),
        ("on: [ended], command: []", "notify[0].command is []"),
        ("on: [ended], webhook: file:///etc/passwd", "begins with https:// or http://"),
        ("on: [ended], webhook: ftp://x/", "begins with https:// or http://"),
        ("on: [ended], webhook: 'http://a:b@x/'", "without a user"),
        ("on: [ended], webhook: 'http://x/ y'", "notify[0].webhook is"),
        ('on: [ended], webhook: "http://x/\\ny"', "notify[0].webhook is"),
        ('on: [ended], webhook: "http://x/\\n"', "notify[0].webhook is"),
        ("on: [ended], command: [a], secret_env: B", "secret_env is for a webhook"),
        ("on: [ended], hook: http://x", "unknown key 'hook'"),
    ],
)
def test_a_mistake_in_notify_is_found_before_a_run_starts(
    home: Path, entry: str, problem: str
) -> None:
    """A notification that is missing is noticed too late."""
    environment = configure(home, f"notify:\n  - {{{entry}}}\n")

    (checked,) = validate([], home, environment)

    assert problem in "\n".join(map(str, checked.problems))


def test_the_secret_of_a_webhook_is_hidden_everywhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name need not look like that of a secret."""
    monkeypatch.setenv("HOOK_SALT", "salt-and-pepper")
    environment = configure(
        home, "notify: [{on: [ended], webhook: 'http://127.0.0.1:9/', secret_env: HOOK_SALT}]\n"
    )

    with open_project(home, environment) as project:
        assert project.secrets.hide("salt-and-pepper") == "[hidden: HOOK_SALT]"


def test_the_address_of_a_webhook_is_masked(home: Path) -> None:
    """`config show` is pasted into tickets, and the path of such an address is its key."""
    environment = configure(
        home,
        "notify:\n  - {on: [ended], webhook: 'https://hooks.example/T0/very-secret?x=1'}\n"
        "  - {on: [ended], webhook: 'https://hooks.example'}\n  - {on: [ended], command: [mail]}\n",
    )

    with open_project(home, environment) as project:
        shown = project.settings.masked()["notify"].value

    assert [each.get("webhook") for each in shown] == [
        "https://hooks.example/***",
        "https://hooks.example",
        None,
    ]
    assert shown[2]["command"] == ["mail"]
