"""Registers contract workflows as a notation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.notation import Command, Notation, NotationOption, OptionKind, Preset, SettingsSection

KEYS = frozenset({"steps", "type", "initial_step", "initialStep"})
"""Any of these at the top of a file makes it a contract."""


def recognize(content: Mapping[str, Any]) -> bool:
    """Whether a file has keys that only contracts have."""
    return not KEYS.isdisjoint(content)


NOTATION = Notation(
    name="contracts",
    label="contract workflow",
    compile="signoff.contracts.definition:compile_file",
    recognize=recognize,
    options=(
        NotationOption(
            "statements",
            "--statements",
            "Database statements: a list of [SQL] or [SQL, PARAMETERS], applied only if all "
            "conditions hold.",
            OptionKind.LIST,
            "JSON",
            commands=("submit",),
        ),
        NotationOption(
            "next_step_hint",
            "--hint",
            "The step that you suggest should follow.",
            metavar="STEP",
            commands=("submit",),
        ),
    ),
    settings=SettingsSection(
        "data",
        "signoff.contracts.guarded_db.settings:DataSection",
        "your own database: url, migrations, backups, keep",
        {"SIGNOFF_DATA_URL": "url"},
        harmless=("keep",),
    ),
    plan="signoff.contracts.compile:plan",
    asks="signoff.contracts.compile:asks",
    resume="signoff.contracts.checkpoint:resume_context",
    schemas="signoff.contracts:schemas",
    presets=(
        Preset(
            "contract",
            "steps with conditions that signoff checks, and a sign-off before the release",
            "signoff.contracts:presets/contract",
            "flows/release.yaml",
        ),
    ),
    commands={
        "db": Command(
            "signoff.surfaces.notations.database:db",
            "Maintain your own SQLite database: migrations, backups, restore.",
            "Set up",
        )
    },
)
