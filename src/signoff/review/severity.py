"""Which severities keep an artifact from being approved."""

from __future__ import annotations

from signoff.core.severity import SEVERITIES, Severity

__all__ = ["DEFAULT_BLOCK_ON", "SEVERITIES", "Severity"]

DEFAULT_BLOCK_ON = (Severity.CRITICAL, Severity.HIGH)
"""What keeps an artifact from being approved, unless the author says otherwise."""
