"""The notation of profiles: its scheme, options, settings and commands, loaded without the rest."""

from __future__ import annotations

from signoff.notation import Command, Notation, NotationOption, OptionKind, Preset, SettingsSection


def _role(name: str, phase: str) -> NotationOption:
    return NotationOption(
        name, f"--{name}", f"The provider of {phase}.", metavar="AGENT", commands=()
    )


# The options are those of `signoff profile init`. They are stored with a session, so that it can be
# resumed; `commands=()` keeps them off `signoff run`.
NOTATION = Notation(
    name="profiles",
    label="profile",
    scheme="profile",
    resolve="signoff.profiles.compile:resolve",
    names="signoff.profiles.discovery:profile_names",
    suffixes=(),
    options=(
        _role("planner", "the plan"),
        _role("generator", "the code"),
        _role("reviewer", "reviews"),
        _role("reviser", "revisions"),
        NotationOption(
            "task_id",
            "--task-id",
            "The id of a task elsewhere, which is recorded.",
            metavar="ID",
            commands=(),
        ),
        NotationOption("dev", "--dev", "The developer.", metavar="NAME", commands=()),
        NotationOption(
            "skip_prompts",
            "--skip-prompts",
            "Approve every prompt without asking.",
            OptionKind.FLAG,
            commands=(),
        ),
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
            "signoff.profiles.commands:profile",
            "Generate code in sessions; a shortcut for run, approve and reject.",
            "Run",
        )
    },
)
