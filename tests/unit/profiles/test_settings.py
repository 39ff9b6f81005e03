from pathlib import Path
from typing import Any

import pytest

from signoff.app.settings.home import Home, init_home
from signoff.app.settings.settings import load_settings, user_file
from signoff.core.errors import ConfigError
from signoff.profiles.session import StageRules
from signoff.profiles.settings import STAGES, ProfilesSection


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return init_home(tmp_path / "project", {}).home


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment without the settings of the user who runs the tests."""
    return {"XDG_CONFIG_HOME": str(tmp_path / "user")}


def section(home: Home, environment: dict[str, str]) -> ProfilesSection:
    return ProfilesSection.of(load_settings(home, environment).sections)


def from_values(**values: Any) -> ProfilesSection:
    return ProfilesSection.of({"profiles": values})


def test_without_settings_everything_is_done_by_hand() -> None:
    """A user with nothing but a chat window needs no settings."""
    settings = ProfilesSection.of({})

    assert settings.provider_for("planner") == "manual"
    assert {settings.stage(name) for name in STAGES} == {StageRules()}
    assert (settings.max_iterations, settings.hash_prompts) == (5, False)
    assert (settings.dir, settings.standards_provider) == (None, None)


def test_a_stage_overrides_single_defaults() -> None:
    """What a stage leaves out is the default; 0 and false are values."""
    settings = from_values(
        approval={
            "default_max_retries": 3,
            "default_allow_rewrite": True,
            "stages": {
                "plan.response": {"approver": "claude-code", "criteria_file": "plans.md"},
                "plan.prompt": {"max_retries": 0, "allow_rewrite": False},
            },
        }
    )

    assert settings.stage("plan.response") == StageRules("claude", 3, True, "plans.md")
    assert settings.stage("plan.prompt") == StageRules("manual", 0, False)


def test_the_layers_override_the_standards_of_single_profiles(
    home: Home, environment: dict[str, str]
) -> None:
    """A project's standards for one profile leave the user's for another one alone."""
    user = user_file(environment)
    user.parent.mkdir(parents=True)
    user.write_text("profiles:\n  standards: {jpa-mt: {root: a}, python-module: {root: b}}\n")
    home.config.write_text("profiles:\n  standards: {jpa-mt: {scope: full}}\n")

    assert section(home, environment).standards.by_name == {
        "jpa-mt": {"scope": "full"},
        "python-module": {"root": "b"},
    }
    home.config.write_text("profiles:\n  standards: {jpa-mt: full}\n")
    with pytest.raises(ConfigError, match=r"profiles\.standards\.jpa-mt"):
        section(home, environment)


def test_the_layers_override_single_values_of_stages(
    home: Home, environment: dict[str, str]
) -> None:
    """A project that names an approver keeps the retries of the user's file."""
    user = user_file(environment)
    user.parent.mkdir(parents=True)
    user.write_text(
        "profiles:\n"
        "  providers: {default: claude, reviewer: codex}\n"
        "  approval: {stages: {plan.response: {approver: codex, max_retries: 2}}}\n"
    )
    home.config.write_text(
        "profiles:\n"
        "  providers: {default: manual}\n"
        "  approval: {stages: {plan.response: skip, plan.prompt: skip}}\n"
    )

    settings = section(home, {**environment, "SIGNOFF_PROFILES_MAX_ITERATIONS": "2"})

    assert settings.provider_for("reviewer") == "codex"
    assert settings.provider_for("planner") == "manual"
    assert settings.stage("plan.response") == StageRules("skip", 2)
    assert settings.stage("plan.prompt") == StageRules("skip", 0)
    assert settings.max_iterations == 2


def test_where_a_nested_setting_comes_from_is_shown(
    home: Home, environment: dict[str, str]
) -> None:
    """`config show` must name the line that a user has to change."""
    home.config.write_text("profiles:\n  approval:\n    stages:\n      plan.response: skip\n")

    values = load_settings(home, environment).values

    approver = values["profiles.approval.stages.plan.response.approver"]
    assert (approver.value, approver.origin) == ("skip", f"{home.config}:4")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("approval: {stages: {plan.respnse: skip}}", 2, ("plan.respnse", *STAGES)),
        (
            "approval:\n    stages:\n      plan.response: {retries: 1}",
            4,
            ("retries", "max_retries"),
        ),
        ("approval: {stages: {plan.response: 3}}", 2, ("plan.response is 3", "approver")),
        ("approvals: {}", 2, ("unknown key 'approvals'", "approval", "providers")),
        ("providers: {writer: claude}", 2, ("unknown key 'writer'", "planner", "default")),
        ("max_iterations: 0", 2, ("max_iterations is 0", "a whole number from 1")),
        ("hash_prompts: maybe", 2, ("hash_prompts is 'maybe'", "true or false")),
        ("approval: {default_max_retries: -1}", 2, ("default_max_retries is -1", "from 0")),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_what_is_valid(
    home: Home, environment: dict[str, str], text: str, line: int, words: tuple[str, ...]
) -> None:
    """A setting that is silently ignored would approve what the user wanted to see."""
    home.config.write_text(f"profiles:\n  {text}\n")

    with pytest.raises(ConfigError) as refused:
        load_settings(home, environment)

    message = str(refused.value)
    assert message.startswith(f"{home.config}:{line}: ")
    assert all(word in message for word in words), message


def test_presence_is_required_for_all_stages_or_for_one() -> None:
    """A team can sign the responses and leave the prompts alone."""
    by_default = from_values(approval={"default_presence": True})
    by_stage = from_values(approval={"stages": {"plan.response": {"presence": True}}})

    assert all(by_default.stage(name).presence for name in STAGES)
    assert [name for name in STAGES if by_stage.stage(name).presence] == ["plan.response"]
