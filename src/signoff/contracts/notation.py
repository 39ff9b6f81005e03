"""Contract workflows, as a notation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.notation import Notation

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
    plan="signoff.contracts.plan:plan",
)
