"""The notation of profiles: its scheme, options, settings and commands, loaded without the rest."""

from __future__ import annotations

from typing import Any

from signoff.notation import Command, Notation, NotationOption, OptionKind, Preset, SettingsSection


def _option(name: str, about: str, metavar: str | None = None, **more: Any) -> NotationOption:
    # The options are those of `signoff profile init`. They are stored with a session, so that it
    # can be resumed; `commands=()` keeps them off `signoff run`.
    flag = f"--{name.replace('_', '-')}"
    return NotationOption(name, flag, about, metavar=metavar, commands=(), **more)


NOTATION = Notation(
    name="profiles",
    label="profile",
    scheme="profile",
    resolve="signoff.profiles.compile:resolve",
    names="signoff.profiles.factories:profile_names",
    suffixes=(),
    options=(
        _option("planner", "The provider of the plan.", "AGENT"),
        _option("generator", "The provider of the code.", "AGENT"),
        _option("reviewer", "The provider of reviews.", "AGENT"),
        _option("reviser", "The provider of revisions.", "AGENT"),
        _option("task_id", "The id of a task elsewhere, which is recorded.", "ID"),
        _option("dev", "The developer.", "NAME"),
        _option("skip_prompts", "Approve every prompt without asking.", kind=OptionKind.FLAG),
    ),
    settings=SettingsSection(
        "profiles",
        "signoff.profiles.settings:ProfilesSection",
        "sessions of profiles: providers, approval, max_iterations, hash_prompts, "
        "standards_provider, standards, options, dir",
        {"SIGNOFF_PROFILES_DIR": "dir", "SIGNOFF_PROFILES_MAX_ITERATIONS": "max_iterations"},
        harmless=("providers", "approval", "max_iterations", "hash_prompts"),
        rounds="max_iterations",
    ),
    layout="signoff.profiles.view:ProfileLayout",
    report="signoff.profiles.view:report",
    asks="signoff.profiles.compile:asks",
    presets=(
        Preset(
            "profile",
            "a profile of your own: plan, generate, review and revise, with a gate after each",
            "signoff.profiles:presets/profile",
            "profile:letter",
        ),
    ),
    commands={
        "profile": Command(
            "signoff.surfaces.notations.profiles:profile",
            "Generate code in sessions; a shortcut for run, approve and reject.",
            "Run",
        )
    },
)
