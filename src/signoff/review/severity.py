"""The severities that block approval."""

from __future__ import annotations

from signoff.core.severity import SEVERITIES, Severity

__all__ = ["DEFAULT_BLOCK_ON", "SEVERITIES", "Severity"]

DEFAULT_BLOCK_ON = (Severity.CRITICAL, Severity.HIGH)
"""The severities that block approval unless the flow sets others."""
