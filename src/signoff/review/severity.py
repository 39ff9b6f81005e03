"""The severities that block approval."""

from __future__ import annotations

from signoff.core.severity import DEFAULT_SEVERITY, SEVERITIES, Severity

__all__ = [
    "DEFAULT_BLOCK_ON",
    "DEFAULT_SEVERITY",
    "LEAST_BLOCKING",
    "SEVERITIES",
    "WORST",
    "Severity",
]

DEFAULT_BLOCK_ON = tuple(severity for severity in Severity if severity.defaults.blocks)
"""The severities that block approval unless the flow sets others."""
LEAST_BLOCKING = DEFAULT_BLOCK_ON[-1]
WORST = DEFAULT_BLOCK_ON[0]
