"""Adds up what runs have cost, by workflow, agent and model."""

from __future__ import annotations

from typing import Any

from signoff.app.project import Project
from signoff.runtime.store_port import LedgerTotal

DAY_SECONDS = 86400.0


def spending(project: Project, days: float) -> tuple[float, list[LedgerTotal]]:
    """Returns since when, and what runs that changed in the last days have cost in all."""
    since = max(0.0, project.clock.now() - days * DAY_SECONDS)
    return since, project.store.ledger_totals(since)


def total_to_json(total: LedgerTotal) -> dict[str, Any]:
    """Returns one line of the sum; what some call did not report is null, next to what is known."""
    return {
        "workflow": total.workflow,
        "agent": total.agent,
        "model": total.model or None,
        "runs": total.runs,
        "calls": total.calls,
        "tokens_in": None if total.unknown_tokens else total.tokens_in,
        "tokens_cached": None if total.unknown_cached else total.tokens_cached,
        "tokens_out": None if total.unknown_tokens else total.tokens_out,
        "usd": None if total.unknown_usd else total.usd,
        "known_usd": total.usd,
        "known_tokens": total.tokens_in + total.tokens_out,
    }
