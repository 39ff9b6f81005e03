"""The notation of skills: its scheme and commands, loaded without the rest."""

from __future__ import annotations

from signoff.notation import Command, Notation

NOTATION = Notation(
    name="skills",
    label="skill",
    scheme="skill",
    resolve="signoff.skills.discovery:resolve_skill",
    names="signoff.skills.discovery:skill_names",
    shipped="signoff.skills.discovery:library_names",
    discover="signoff.skills.discovery:own_skills",
    suffixes=(),
    commands={
        "skill": Command(
            "signoff.skills.commands:skill",
            "Follow a procedure, one step at a time.",
            "Run",
        )
    },
)
