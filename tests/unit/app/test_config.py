from pathlib import Path

from signoff.app.config import config_files, show_config
from signoff.app.home import init_home
from signoff.app.settings import load_settings, unknown_variables


def test_a_secret_in_the_settings_is_not_repeated(tmp_path: Path) -> None:
    """`config show` is pasted into bug reports."""
    home = init_home(tmp_path, {}).home
    home.config.write_text("agents: {mine: {kind: a:b, api_key: sk-123, max_tokens: 5}}")

    settings = show_config(load_settings(home, isolated(tmp_path)))

    shown = {key: setting.value for key, setting in settings.items()}

    assert shown["agents.mine.api_key"] == "***"
    assert shown["agents.mine.kind"] == "a:b"
    assert shown["agents.mine.max_tokens"] == 5


def test_the_files_are_listed_whether_or_not_they_are_there(tmp_path: Path) -> None:
    """People ask where to put a file that does not exist yet."""
    home = init_home(tmp_path, {}).home

    files = config_files(home, isolated(tmp_path))

    assert [there for _, there in files] == [False, True]
    assert files[1][0] == home.config


def test_a_variable_that_looks_like_a_setting_and_is_none_is_noticed() -> None:
    """SIGNOFF_LIMIT_USD=1 protects nobody."""
    environment = {"SIGNOFF_LIMIT_USD": "1", "SIGNOFF_LIMITS_USD": "1", "SIGNOFF_HOME": "x"}

    assert unknown_variables(environment) == ["SIGNOFF_LIMIT_USD"]


def isolated(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "user")}
