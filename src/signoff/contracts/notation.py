"""Contract workflows, as a notation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.notation import Command, Notation, SettingsSection

KEYS = frozenset({"steps", "type", "initial_step", "initialStep"})
"""Any of these at the top of a file makes it a contract."""


def recognize(content: Mapping[str, Any]) -> bool:
    """Tells whether a file has keys that only contracts have."""
    return not KEYS.isdisjoint(content)


NOTATION = Notation(
    name="contracts",
    label="contract workflow",
    compile="signoff.contracts.compile_file:compile_file",
    recognize=recognize,
    settings=SettingsSection(
        "data",
        "signoff.contracts.settings:DataSection",
        "your own database: url, migrations, backups, keep",
        {"SIGNOFF_DATA_URL": "url"},
    ),
    plan="signoff.contracts.plan:plan",
    schemas="signoff.contracts:schemas",
    commands={
        "db": Command(
            "signoff.contracts.commands:db",
            "Maintain your own database: migrations, backups, restore.",
            "Set up",
        )
    },
)
