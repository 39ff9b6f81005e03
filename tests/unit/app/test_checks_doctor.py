import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from signoff.agents.base import Health
from signoff.app.checks import Check, check_setup
from signoff.app.home import init_home
from signoff.app.settings import AgentSettings
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
