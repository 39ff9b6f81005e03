"""The notation of skills: its scheme and commands, loaded without the rest."""

from __future__ import annotations

from signoff.notation import Command, Notation, Preset

NOTATION = Notation(
    name="skills",
    label="skill",
    scheme="skill",
    resolve="signoff.skills.discovery:resolve_skill",
    names="signoff.skills.discovery:skill_names",
    shipped="signoff.skills.discovery:library_names",
    discover="signoff.skills.discovery:own_skills",
    suffixes=(),
    presets=(
        Preset(
            "skill",
            "a procedure for a coding agent, handed out one step at a time",
            "signoff.skills:presets/skill",
            "skill:bug-report",
            external=True,
        ),
    ),
    commands={
        "skill": Command(
            "signoff.surfaces.notations.skills:skill",
            "Follow a procedure step by step; a shortcut for run, next and submit.",
            "Run",
        )
    },
)
