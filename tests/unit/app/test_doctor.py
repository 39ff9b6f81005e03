import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from signoff.agents.base import Health
from signoff.app.doctor import Check, check_setup
from signoff.app.home import init_home
from signoff.app.settings import AgentSettings
from signoff.runtime.ports import Capabilities
from signoff.store.schema import LATEST
from signoff.store.sqlite import SqliteStore

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
        "codex": Health(False, "not installed", "install it"),
        "manual": Health(True, "a person"),
    }


def nobody(settings: Mapping[str, AgentSettings]) -> dict[str, Health]:
    return {"claude": Health(False, "not installed"), "manual": Health(True, "a person")}


def looked_at(folder: Path, environment: dict[str, str]) -> dict[str, Check]:
    return {check.name: check for check in check_setup(folder, environment, look).checks}


def test_agents_say_themselves_how_they_are(tmp_path: Path, environment: dict[str, str]) -> None:
    """Each kind knows best what it needs: a program, a login, a key, a server."""
    home = init_home(tmp_path, {}).home
    home.config.write_text("agents:\n  mine: {kind: manual}\n")

    checks = looked_at(tmp_path, environment)

    assert (checks["claude"].ready, checks["claude"].detail) == (True, "2.1.0 at /bin/claude")
    assert (checks["codex"].ready, checks["codex"].remedy) == (False, "install it")
    assert [name for name in ("mine", "codex") if checks[name].wanted] == ["mine"]


def test_somebody_without_any_agent_is_told_what_to_do_in_three_lines(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """A newcomer's first minute decides; the person at the keyboard is no agent they have."""
    init_home(tmp_path, {})

    assert len(check_setup(tmp_path, environment, nobody).advice) == 3
    assert check_setup(tmp_path, environment, look).advice == ()


def test_missing_agents_do_not_keep_the_engine_from_running(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Workflows of commands and people need none."""
    init_home(tmp_path, {})

    assert check_setup(tmp_path, environment, nobody).can_run


def test_keys_are_named_and_never_shown(tmp_path: Path, environment: dict[str, str]) -> None:
    """The output is what people paste into bug reports."""
    init_home(tmp_path, {})

    checks = looked_at(tmp_path, environment)

    assert checks["API keys"].detail == "ANTHROPIC_API_KEY"
    assert SECRET not in str(checks)


def test_everything_that_is_not_ready_says_what_to_do(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """A red line without a remedy only worries people."""
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
def test_a_folder_that_takes_no_home_keeps_the_engine_from_running(
    tmp_path: Path, environment: dict[str, str], spoil: Callable[[Path], None]
) -> None:
    """`the engine is ready` was followed by a run that could not make its home."""
    folder = tmp_path / "project"
    folder.mkdir()
    spoil(folder)

    found = check_setup(folder, environment, look)

    project = next(check for check in found.checks if check.name == "project")
    assert not found.can_run
    assert f"{folder} is not writable" in project.detail
    assert "SIGNOFF_HOME=" in project.remedy


def test_a_sound_database_is_ready(tmp_path: Path, environment: dict[str, str]) -> None:
    """Its schema version is what support asks for first."""
    home = init_home(tmp_path, {}).home
    SqliteStore(home.path / "signoff.db").close()

    check = looked_at(tmp_path, environment)["database"]

    assert check.ready
    assert f"schema {LATEST}" in check.detail


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"\x00" * 4096])
def test_a_damaged_database_keeps_the_engine_from_running(
    tmp_path: Path, environment: dict[str, str], content: bytes
) -> None:
    """`ready to run` followed by a failed run is worse than no doctor."""
    home = init_home(tmp_path, {}).home
    (home.path / "signoff.db").write_bytes(content)

    found = check_setup(tmp_path, environment, look)

    assert not found.can_run


def test_looking_changes_nothing(tmp_path: Path, environment: dict[str, str]) -> None:
    """People run it where they do not want a project."""
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


@pytest.mark.parametrize(
    ("agent", "needs"),
    [("{kind: command}", "argv"), ("{kind: cassette}", "file and agent")],
    ids=["command", "cassette"],
)
def test_what_an_agent_lacks_is_told_in_the_words_of_the_settings(
    tmp_path: Path, environment: dict[str, str], agent: str, needs: str
) -> None:
    """It said `CommandAgent.__init__() missing 1 required keyword-only argument`."""
    home = init_home(tmp_path, {}).home
    home.config.write_text(f"agents:\n  mine: {agent}\n")

    found = check_setup(tmp_path, environment)

    mine = next(check for check in found.checks if check.name == "mine")
    assert f"agent 'mine' needs {needs}" in mine.detail
    assert f"add {needs} to agents.mine" in mine.remedy
    assert "__init__" not in mine.detail


def test_what_to_do_about_an_agent_is_told_once(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The same long command stood on two lines, one below the other."""
    install = "npm install -g claude"

    def absent(settings: Mapping[str, AgentSettings]) -> dict[str, Health]:
        return {"claude": Health(False, f"claude is not installed: {install}", install)}

    found = check_setup(tmp_path, environment, absent)

    claude = next(check for check in found.checks if check.name == "claude")
    assert (claude.detail, claude.remedy) == ("claude is not installed", install)


def test_what_the_settings_name_and_cannot_be_used_is_in_the_last_line(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """`ready to run` would send somebody off with an agent that is not there."""
    home = init_home(tmp_path, {}).home
    home.config.write_text(
        "agents:\n  mine: {kind: nowhere.module:Agent}\nroles:\n  developer: nobody\n"
    )

    found = check_setup(tmp_path, environment)

    checks = {check.name: check for check in found.checks}
    assert (found.can_run, found.unusable) == (True, ("mine", "roles"))
    assert checks["roles"].detail == f"{home.config}:4: roles.developer: unknown agent 'nobody'"
    assert "mine" in checks["roles"].remedy


def test_what_each_agent_can_do_is_told(tmp_path: Path, environment: dict[str, str]) -> None:
    """Whether an agent edits files or reports its price decides what it can be used for."""
    home = init_home(tmp_path, {}).home
    home.config.write_text("agents:\n  mine: {kind: command, argv: [tool], edits: true}\n")

    checks = looked_at(tmp_path, environment)

    assert checks["python"].capabilities is None
    assert checks["mine"].capabilities == Capabilities(
        edits_files=True, streaming=True, reports_price=False
    )
    assert checks["claude"].capabilities is not None
    assert checks["claude"].capabilities.model_family == "anthropic"
