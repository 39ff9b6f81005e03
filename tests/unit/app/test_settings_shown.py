from pathlib import Path

from signoff.app.home import init_home
from signoff.app.settings import load_settings, settings_files, unknown_variables


def test_a_secret_in_the_settings_is_masked(tmp_path: Path) -> None:
    """`config show` is pasted into bug reports."""
    home = init_home(tmp_path, {}).home
    home.config.write_text("agents: {mine: {kind: a:b, api_key: sk-123, max_tokens: 5}}")

    settings = load_settings(home, isolated(tmp_path)).masked()

    values = {key: setting.value for key, setting in settings.items()}
    assert values["agents.mine.api_key"] == "***"
    assert values["agents.mine.kind"] == "a:b"
    assert values["agents.mine.max_tokens"] == 5


def test_the_files_are_listed_whether_or_not_they_are_there(tmp_path: Path) -> None:
    """Users ask where to put a file that does not exist yet."""
    home = init_home(tmp_path, {}).home

    user, project = settings_files(home, isolated(tmp_path))

    assert not user.exists()
    assert project == home.config


def test_an_unknown_variable_with_our_prefix_is_found() -> None:
    """SIGNOFF_LIMIT_USD=1 limits nothing."""
    environment = {"SIGNOFF_LIMIT_USD": "1", "SIGNOFF_LIMITS_USD": "1", "SIGNOFF_HOME": "x"}

    assert unknown_variables(environment) == ["SIGNOFF_LIMIT_USD"]


def isolated(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "user")}
