import os
from pathlib import Path

import pytest

from signoff.app.settings.home import Home, init_home, template
from signoff.app.settings.settings import (
    Settings,
    load_settings,
    settings_files,
    unknown_variables,
    user_file,
)
from signoff.core.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return init_home(tmp_path / "project", {}).home


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment without the settings of the user who runs the tests."""
    return {"XDG_CONFIG_HOME": str(tmp_path / "user")}


def write_user(environment: dict[str, str], text: str) -> None:
    path = user_file(environment)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def complaints(home: Home, environment: dict[str, str], **command_line: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_settings(home, environment, command_line)
    return str(caught.value).splitlines()


def test_every_example_in_the_fresh_file_is_valid_when_uncommented(
    home: Home, environment: dict[str, str]
) -> None:
    """Users remove the # and expect it to work."""
    lines = [line.removeprefix("# ") for line in template("config.yaml").splitlines()]
    sections = [line for line in lines if line.startswith(" ") or line.endswith(":")]
    home.config.write_text("\n".join(["version: 1", *sections]))

    settings = load_settings(home, environment)

    assert settings.limits.usd == 5
    assert settings.agents["claude"].limits.rate == "10/min"
    assert settings.agents["mine"].kind == "my_package.agents:build"
    assert settings.roles == {"developer": "claude"}
    assert settings.workflows == ["workflows", "my_package.workflows"]


def test_relative_paths_of_agents_start_where_their_settings_are(
    home: Home, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They started in the current folder, so a command failed in a subfolder of the project."""
    home.config.write_text(
        "version: 1\nagents:\n  gpt-4.1: {kind: scripted, file: script.yaml, model: small}\n"
    )
    write_user(environment, "version: 1\nagents:\n  own: {kind: scripted, file: own.yaml}\n")
    monkeypatch.chdir(home.path)

    agents = load_settings(home, environment).agents

    of_project = {"file": str(home.root / "script.yaml"), "model": "small"}
    assert agents["gpt-4.1"].located(["file", "other"]) == of_project
    own = user_file(environment).with_name("own.yaml")
    assert agents["own"].located(["file"]) == {"file": str(own)}
    monkeypatch.chdir(home.root)
    assert agents["gpt-4.1"].located(["file"])["file"] == "script.yaml"


def test_each_value_has_an_origin(home: Home, environment: dict[str, str]) -> None:
    """`config show` is how users find out which file wins."""
    home.config.write_text("version: 1\nlimits:\n  usd: 2\n")
    environment |= {"SIGNOFF_LIMITS_CALLS": "3"}

    values = load_settings(home, environment, {"limits.seconds": "4"}).values

    assert values["limits.usd"].origin == f"{home.config}:3"
    assert values["limits.calls"].origin == "environment SIGNOFF_LIMITS_CALLS"
    assert values["limits.seconds"].origin == "command line --limit seconds"
    assert values["database"].origin == "built-in"


def test_a_layer_replaces_one_option_of_an_agent_and_leaves_the_others(
    home: Home, environment: dict[str, str]
) -> None:
    """A project that lowers an agent's rate must not lose its model."""
    write_user(environment, "agents: {claude: {model: large, concurrency: 4}}")
    home.config.write_text("agents: {claude: {concurrency: 1}}")

    agent = load_settings(home, environment).agents["claude"]

    assert agent.kind == "claude"
    assert agent.limits.concurrency == 1
    assert agent.options == {"model": "large"}


@pytest.mark.parametrize("text", ["", "# nothing\n", "limits:\n", "agents: {claude: }\n"])
def test_an_empty_file_is_valid(home: Home, environment: dict[str, str], text: str) -> None:
    """Users comment things out and leave the section names."""
    home.config.write_text(text)

    assert isinstance(load_settings(home, environment), Settings)


def test_every_mistake_of_every_layer_is_reported_at_once(
    home: Home, environment: dict[str, str]
) -> None:
    """One problem per try would cost one try per mistake."""
    home.config.write_text(
        """\
limts: {usd: 3}
limits:
  usd: "5"
  callz: 3
agents:
  claude: {concurrency: 0, rate: 10/fortnight}
  codex: 5
roles: [a]
workflows: foo
log_level: loud
"""
    )
    environment |= {"SIGNOFF_LIMITS_USD": "much"}

    lines = complaints(home, environment, **{"limits.apples": "3"})

    assert [line.removeprefix(f"{home.config}:").split(" (")[0] for line in lines] == [
        "1: unknown key 'limts'",
        "3: limits.usd is '5'",
        "4: unknown key 'callz'",
        "6: agents.claude.concurrency is 0",
        "6: agents.claude.rate is '10/fortnight'",
        "7: agents.codex is 5",
        "8: roles is ['a']",
        "9: workflows is 'foo'",
        "10: log_level is 'loud'",
        "environment SIGNOFF_LIMITS_USD: limits.usd is 'much'",
        "command line --limit apples: unknown key 'apples'",
    ]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("limts: {}", "did you mean 'limits'? valid: version, limits, agents"),
        ("limits: {dollars: 1}", "valid: usd, tokens, calls, seconds"),
        ("log_level: loud", "one of: debug, info, warning, error"),
        ("agents: {a: {rate: often}}", 'as in "10/min"'),
        # A long s, which is an s without regard to case.
        ("agents: {a: {rate: 1/\u017f}}", 'as in "10/min"'),
        ("agents: {a: {price: {in: 3}}}", "as in {in: 3, out: 15}"),
        ("agents: {a: {price: {in: 3, out: -1}}}", "as in {in: 3, out: 15}"),
        ("agents: {a: {price: {in: 3, up: 1}}}", "as in {in: 3, out: 15}"),
        ("agents: {a: {price: cheap}}", "as in {in: 3, out: 15}"),
        ("agents: {a: {retries: -1}}", "a whole number from 0"),
        ("limits: {usd: true}", "a number of at least 0"),
        ("limits: {usd: .inf}", "a number of at least 0"),
        ("limits: {calls: -1}", "a whole number of at least 0"),
    ],
)
def test_a_mistake_is_reported_with_what_is_valid(
    home: Home, environment: dict[str, str], text: str, remedy: str
) -> None:
    """A problem without a remedy sends users to the documentation."""
    home.config.write_text(text)

    (line,) = complaints(home, environment)

    assert remedy in line


def test_a_file_of_a_newer_version_is_rejected_with_a_remedy(
    home: Home, environment: dict[str, str]
) -> None:
    """Half-read settings of a newer program could drop a spending limit."""
    home.config.write_text("version: 2\nnew_key: 1\n")

    (line,) = complaints(home, environment)

    assert "version 2 is newer" in line
    assert "upgrade signoff" in line


def test_the_null_device_turns_the_user_file_off() -> None:
    """Scripts and CI jobs use it to be independent of the user's settings."""
    settings = load_settings(None, {"SIGNOFF_CONFIG": os.devnull})

    assert settings.limits == Settings().limits


def test_a_user_file_named_by_the_variable_has_to_exist(home: Home, tmp_path: Path) -> None:
    """Settings that silently do not apply are worse than none."""
    environment = {"SIGNOFF_CONFIG": str(tmp_path / "typo.yaml")}

    (complaint,) = complaints(home, environment)

    assert "typo.yaml" in complaint


def test_the_users_database_is_named_in_the_file_or_the_environment(
    home: Home, environment: dict[str, str]
) -> None:
    """The password may be in the environment while the rest is committed."""
    home.config.write_text("version: 1\ndata: {url: book.db, migrations: changes, keep: 3}\n")
    secret = {**environment, "SIGNOFF_DATA_URL": "postgresql://ann@db/book"}

    loaded = [load_settings(home, each) for each in (environment, secret)]

    in_file, elsewhere = (each.sections["data"] for each in loaded)
    assert in_file == {"url": "book.db", "migrations": "changes", "keep": 3}
    assert elsewhere == {**in_file, "url": "postgresql://ann@db/book"}


def test_mistakes_about_the_users_database_are_reported_together(
    home: Home, environment: dict[str, str]
) -> None:
    """Keeping no backup at all is never intended."""
    home.config.write_text("version: 1\ndata:\n  uri: book.db\n  keep: 0\n")

    found = complaints(home, environment)

    assert any("config.yaml:3" in line and "unknown key 'uri'" in line for line in found)
    assert any("config.yaml:4" in line and "a whole number from 1" in line for line in found)


def test_presence_is_required_by_a_file_and_by_no_variable(
    home: Home, environment: dict[str, str]
) -> None:
    """A process could otherwise switch off what a human has to sign, for itself."""
    assert not load_settings(home, environment).presence_required
    home.config.write_text("version: 1\napprovals: {presence: required}\n")
    environment["SIGNOFF_APPROVALS_PRESENCE"] = "declared"

    assert load_settings(home, environment).presence_required
    home.config.write_text("version: 1\napprovals: {presence: maybe}\n")
    assert "one of: declared, required" in complaints(home, environment)[0]


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
