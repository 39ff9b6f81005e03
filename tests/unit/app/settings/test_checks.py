import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from signoff.agents.base import Health
from signoff.app.runs.start import plan
from signoff.app.settings.checks import Check, check_setup, validate
from signoff.app.settings.home import init_home
from signoff.app.settings.project import Project
from signoff.app.settings.settings import AgentSettings
from signoff.core.errors import ConfigError
from signoff.core.outcome import Status
from signoff.runtime.owner import this_process
from signoff.runtime.ports import Capabilities
from signoff.store.connection import LATEST
from signoff.store.sqlite import SqliteStore
from tests.store_suite.journal_writer import JournalWriter

SECRET = "sk-do-not-print-me"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "user"), "ANTHROPIC_API_KEY": SECRET}


def look(settings: Mapping[str, AgentSettings]) -> dict[str, Health]:
    """A machine with a `claude` that answers, and nothing else."""
    named = {name: Health(True, "as configured") for name in settings}
    return {
        **named,
        "claude": Health(True, "2.1.0 at /bin/claude"),
        "codex": Health(False, "not installed", "install it", absent=True),
        "manual": Health(True, "a human"),
    }


def no_agents(settings: Mapping[str, AgentSettings]) -> dict[str, Health]:
    return {"claude": Health(False, "not installed"), "manual": Health(True, "a human")}


def looked_at(folder: Path, environment: dict[str, str]) -> dict[str, Check]:
    return {check.name: check for check in check_setup(folder, environment, look).checks}


def test_without_any_agent_three_ways_to_get_one_are_shown(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The agent `manual` is always ready, so it must not count as an agent the user has."""
    init_home(tmp_path, {})

    assert len(check_setup(tmp_path, environment, no_agents).advice) == 3
    assert check_setup(tmp_path, environment, look).advice == ()


def test_keys_are_named_and_never_shown(tmp_path: Path, environment: dict[str, str]) -> None:
    """Users paste the output into bug reports."""
    init_home(tmp_path, {})

    checks = looked_at(tmp_path, environment)

    assert checks["API keys"].detail == "ANTHROPIC_API_KEY"
    assert SECRET not in str(checks)


def test_everything_that_is_not_ready_has_a_remedy(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """A problem without a remedy does not help the user."""
    checks = looked_at(tmp_path, environment | {"SIGNOFF_LIMTS_USD": "3"})

    assert [check.name for check in checks.values() if not check.ready and not check.remedy] == []
    assert "signoff init" in checks["project"].remedy
    assert "SIGNOFF_LIMTS_USD" in checks["environment"].detail


def no_longer_there(folder: Path) -> None:
    folder.rmdir()


def read_only(folder: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write where others may not")
    folder.chmod(0o500)


@pytest.mark.parametrize("spoil", [no_longer_there, read_only])
def test_a_folder_without_write_access_keeps_the_engine_from_running(
    tmp_path: Path, environment: dict[str, str], spoil: Callable[[Path], None]
) -> None:
    """Otherwise `the engine is ready` would be followed by a run that fails."""
    folder = tmp_path / "project"
    folder.mkdir()
    spoil(folder)

    found = check_setup(folder, environment, look)

    project = next(check for check in found.checks if check.name == "project")
    assert not found.can_run
    assert f"{folder} is not writable" in project.detail
    assert "SIGNOFF_HOME=" in project.remedy


def test_an_intact_database_is_ready(tmp_path: Path, environment: dict[str, str]) -> None:
    """Its schema version is what support asks for first."""
    home = init_home(tmp_path, {}).home
    SqliteStore(home.path / "signoff.db").close()

    check = looked_at(tmp_path, environment)["database"]

    assert check.ready
    assert f", tables version {LATEST}, " in check.detail


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"\x00" * 4096])
def test_a_damaged_database_keeps_the_engine_from_running(
    tmp_path: Path, environment: dict[str, str], content: bytes
) -> None:
    """`ready to run` followed by a failed run is worse than no doctor."""
    home = init_home(tmp_path, {}).home
    (home.path / "signoff.db").write_bytes(content)

    found = check_setup(tmp_path, environment, look)

    assert not found.can_run


def test_checking_changes_nothing(tmp_path: Path, environment: dict[str, str]) -> None:
    """Users run it in folders that are not projects."""
    before = sorted(tmp_path.rglob("*"))

    check_setup(tmp_path, environment, look)

    assert sorted(tmp_path.rglob("*")) == before


def test_settings_with_mistakes_keep_the_engine_from_running(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """No run would start with them."""
    home = init_home(tmp_path, {}).home
    home.config.write_text("limts: {}\nrolls: {}\n")

    found = check_setup(tmp_path, environment, look)

    assert not found.can_run
    settings = next(check for check in found.checks if check.name == "settings")
    assert "(and 1 more)" in settings.detail


def test_unusable_agents_of_the_settings_are_in_the_last_line(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """`ready to run` would be wrong if a configured agent is missing."""
    home = init_home(tmp_path, {}).home
    home.config.write_text(
        "agents:\n  mine: {kind: nowhere.module:Agent}\nroles:\n  developer: missing\n"
    )

    found = check_setup(tmp_path, environment)

    checks = {check.name: check for check in found.checks}
    assert (found.can_run, found.unusable) == (True, ("mine", "roles"))
    assert checks["roles"].detail == f"{home.config}:4: roles.developer: unknown agent 'missing'"
    assert "mine" in checks["roles"].remedy


def test_the_capabilities_of_each_agent_are_reported(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Whether an agent edits files or reports its price decides what it can be used for."""
    home = init_home(tmp_path, {}).home
    home.config.write_text("agents:\n  mine: {kind: command, argv: [tool], edits: true}\n")

    checks = looked_at(tmp_path, environment)

    assert checks["python"].capabilities is None
    assert checks["mine"].capabilities == Capabilities(
        edits_files=True, streaming=True, reports_price=False
    )
    assert checks["claude"].capabilities is not None


def test_a_model_too_small_to_review_is_not_enough(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """`ready to run` would send the user into a run that starts nothing."""

    def small(_settings: Mapping[str, AgentSettings]) -> dict[str, Health]:
        return {"local": Health(True, "smollm2-135m"), "claude": Health(False, "not installed")}

    report = check_setup(tmp_path, environment, small)

    assert len(report.advice) == 3
    assert not any("small model" in each for each in report.advice)


def test_observers_that_cannot_be_loaded_are_reported(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Otherwise the first run reports them, when no one is looking."""
    home = init_home(tmp_path, {}).home
    home.config.write_text("observe:\n  mine: {kind: no_such_module_anywhere:Observer}\n")

    observers = looked_at(tmp_path, environment)["observers"]

    assert not observers.ready
    assert "no_such_module_anywhere" in observers.detail
    assert observers.remedy


def test_a_queued_run_without_a_worker_is_reported(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The queue grows silently otherwise; with a worker that can, all is well."""
    home = init_home(tmp_path, {}).home
    assert "workers" not in looked_at(tmp_path, environment)
    store = SqliteStore(home.path / "signoff.db")
    writer = JournalWriter(store, "stuck")
    writer.begin(needs=("gpu",), status=Status.QUEUED, release=True)

    alone = looked_at(tmp_path, environment)["workers"]
    store.register(this_process(), 4, ["other"])
    unable = looked_at(tmp_path, environment)["workers"]
    store.register(this_process(), 2, ["gpu"])
    able = looked_at(tmp_path, environment)["workers"]
    store.close()

    assert (alone.ready, unable.ready, able.ready) == (False, False, True)
    assert "run 'stuck' waits: no worker is running" in alone.detail
    assert "no worker has gpu" in unable.detail
    assert able.detail == "2 workers, 0 of 6 slots in use, 1 queued"


def test_a_dispatcher_that_cannot_be_reached_or_is_unknown_is_reported(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Runs continue without it, but more slowly, and no one would know why."""
    home = init_home(tmp_path, {}).home
    SqliteStore(home.path / "signoff.db").close()
    details = ""
    for url in ("temporal://127.0.0.1:1/default", "pigeon://roof", "roof"):
        home.config.write_text(f"dispatch: {url}\n")
        check = looked_at(tmp_path, environment)["dispatcher"]
        assert not check.ready
        details += check.detail

    assert "cannot reach Temporal at 127.0.0.1:1" in details
    assert "'pigeon'" in details
    assert "'roof'" in details


GOOD = """
from signoff import Outcome, StepDef, Workflow
WORKFLOW = Workflow("good", StepDef("only", next={Outcome.OK: None}))
"""
BAD = """
from signoff import Outcome, StepDef, Workflow
WORKFLOW = Workflow("bad", StepDef("a", next={Outcome.OK: "z"}), StepDef("b"))
"""


def test_each_problem_of_a_file_names_the_line_of_its_step(project: Project) -> None:
    """A workflow of forty steps is long, and editors jump to `file:line`."""
    file = project.home.root / "places.py"
    file.write_text(
        "import signoff\n"
        "from signoff import Outcome, StepDef, Workflow\n"
        "WORKFLOW = Workflow(\n"
        "    'bad',\n"
        "    StepDef('a', next={Outcome.OK: 'z'}),\n"
        "    signoff.StepDef(\n"
        "        'b',\n"
        "    ),\n"
        ")\n"
    )

    (checked,) = validate(["places.py"], project.cwd, isolated(project))

    lines = {p.where.removeprefix(f"{file}:") for p in checked.problems}
    assert lines == {"5: step 'a'", "3: workflow", "6: step 'b'"}


def test_a_step_whose_line_cannot_be_known_names_the_workflows(project: Project) -> None:
    """Steps can be created in a loop; a wrong line would be worse than a rough one."""
    (project.home.root / "looped.py").write_text(
        "from signoff import Outcome, StepDef, Workflow\n"
        "steps = [StepDef(f'step-{n}', next={Outcome.OK: 'z'}) for n in range(2)]\n"
        "WORKFLOW = Workflow('bad', *steps)\n"
    )

    (checked,) = validate(["looped.py"], project.cwd, isolated(project))

    assert {p.where.partition("looped.py:")[2][:2] for p in checked.problems} == {"3:"}


def test_an_unknown_kind_of_agent_is_reported_with_its_line(project: Project) -> None:
    """Otherwise the run would fail at its first call, perhaps hours after its start."""
    (project.home.root / "good.py").write_text(GOOD)
    config = project.home.config
    config.write_text("agents:\n  ann: {kind: manuel}\n  bob: {kind: 'house:Model'}\n")

    settings, good = validate(["good.py"], project.cwd, isolated(project))

    (problem,) = settings.problems
    assert str(problem).startswith(f"{config}:2: agents.ann: unknown kind 'manuel' (kinds: ")
    assert "manual" in problem.remedy
    assert good.valid
    planned = plan(project.cwd, isolated(project), "good.py", {})
    assert planned.warnings == (str(problem),)


@pytest.mark.parametrize("kind", ["claude", "openai", "command"])
def test_an_unknown_option_of_an_agent_is_reported_before_the_start(
    project: Project, kind: str
) -> None:
    """The run failed at its first call, with an error of Python."""
    (project.home.root / "good.py").write_text(GOOD)
    config = project.home.config
    config.write_text(f"agents:\n  ann:\n    kind: {kind}\n    modle: x\n")

    settings, good = validate(["good.py"], project.cwd, isolated(project))

    (problem,) = settings.problems
    assert str(problem).startswith(
        f"{config}:4: agents.ann: unknown option 'modle' (did you mean 'model'? valid: "
    )
    assert good.valid
    with pytest.raises(ConfigError, match="unknown option 'modle'"):
        plan(project.cwd, isolated(project), "good.py", {})


def test_a_role_without_an_agent_is_a_problem_with_its_line(project: Project) -> None:
    """Otherwise it is found when a step asks for it, an hour into a run."""
    config = project.home.config
    config.write_text("roles:\n  architect: missing\n")

    (checked,) = validate([], project.cwd, isolated(project))

    (problem,) = checked.problems
    assert str(problem).startswith(
        f"{config}:2: roles.architect: unknown agent 'missing' (name one of: "
    )


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("no_such_module:look", "No module named 'no_such_module'"),
        ("broken_checks:look", "not today"),
        ("json:loads", ""),
    ],
)
def test_a_check_that_cannot_be_imported_is_a_warning(
    project: Project, function: str, why: str
) -> None:
    """A spelling mistake in the settings should not wait for the first review."""
    (project.home.root / "good.py").write_text(GOOD)
    (project.home.root / "broken_checks.py").write_text("raise OSError('not today')\n")
    config = project.home.config
    config.write_text(f"agents:\n  tidy:\n    kind: check\n    function: '{function}'\n")

    checked = validate(["good.py"], project.cwd, isolated(project))

    remarks = [warning for each in checked for warning in each.warnings]
    assert all(each.valid for each in checked)
    assert bool(remarks) is bool(why)
    assert all(f"{config}:4: agents.tidy: " in warning and why in warning for warning in remarks)


def test_the_skills_of_the_project_are_checked_too(project: Project) -> None:
    """They can be run by name, and a broken one would be noticed by the agent that needs it."""
    folder = project.home.path / "skills"
    folder.mkdir()
    (folder / "good.py").write_text(GOOD)
    (folder / "bad.py").write_text(BAD)

    good, bad = validate([], project.cwd, isolated(project))

    assert (good.workflow, good.target) == ("good", str(folder / "good.py"))
    assert all("bad.py" in problem.where for problem in bad.problems)
    assert len(bad.problems) >= 3


def isolated(project: Project) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(project.cwd / "user")}


def test_what_agents_lack_on_this_machine_is_a_warning_and_never_a_problem(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pipelines check definitions where no agent is installed and no key is set."""
    for name in ("OPENAI_API_KEY", "MY_KEY"):
        monkeypatch.delenv(name, raising=False)
    project.home.config.write_text(
        "agents:\n"
        "  mine: {kind: openai, model: m, base_url: 'http://localhost:1/v1', key_env: MY_KEY}\n"
        "  local-server: {kind: openai, model: m, base_url: 'http://localhost:1/v1'}\n"
        "  lint: {kind: check, argv: [no-such-linter]}\n"
    )
    flow = project.home.root / "flow.yaml"
    flow.write_text(
        "goal: x\nconstraints: {inline: {short: Short.}}\n"
        "workflow:\n  - {step: generate, agent: openai, model: m}\n"
        "  - {step: critique, agent: lint}\n"
    )

    settings, checked = validate(["flow.yaml"], project.cwd, isolated(project))

    assert settings.valid
    assert checked.valid
    assert [warning.partition(": ")[2] for warning in settings.warnings] == [
        "agents.mine needs a key, but MY_KEY is not set",
        "agents.lint runs no-such-linter, which is not on PATH",
    ]
    assert "the key of openai is not set, and a run asks it" in checked.warnings
