"""Decides whether a quality review has passed, by its items alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from signoff.review.blocking import BlockingTable, blocking_at, relaxing_table
from signoff.skills.qr.items import ItemStatus, QRItem, Severity
from signoff.skills.types import QRStatus

DEFAULT: BlockingTable[Severity] = relaxing_table(tuple(Severity))
"""Iterations 1 and 2 block on everything, 3 and 4 on MUST and SHOULD, later ones on MUST."""

ITERATION_LIMIT = 5
"""From this iteration on, a human decides about a failure instead of another try."""


class QRAction(StrEnum):
    """What to do about a verdict."""

    PROCEED = "proceed"
    REDO = "redo"
    """Fix what failed, then have it verified again."""
    VERIFY = "verify"
    """Verify what is not recorded; the work itself is not known to be wrong."""
    ASK = "ask"
    """Have a human decide."""


@dataclass(frozen=True)
class QRVerdict:
    """The result of a quality review."""

    status: QRStatus
    action: QRAction


def blocking(iteration: int, table: BlockingTable[Severity] = DEFAULT) -> frozenset[Severity]:
    """Returns the severities that block in an iteration."""
    return blocking_at(iteration, table)


def judge(
    items: Iterable[QRItem | Mapping[str, Any]],
    iteration: int,
    reported: str | None = None,
    table: BlockingTable[Severity] = DEFAULT,
) -> QRVerdict:
    """Returns the verdict on recorded items; what a reviewer reported never makes it a pass."""
    read = [each if isinstance(each, QRItem) else QRItem.from_json(each) for each in items]
    if any(item.status is ItemStatus.FAIL for item in blockers(read, iteration, table)):
        return _failure(QRAction.REDO, iteration)
    failed = any(item.status is ItemStatus.FAIL for item in read)
    unrecorded = not failed and str(reported).strip().lower() == QRStatus.FAIL
    todo = any(item.status is ItemStatus.TODO for item in blockers(read, iteration, table))
    if todo or unrecorded:
        return _failure(QRAction.VERIFY, iteration)
    return QRVerdict(QRStatus.PASS, QRAction.PROCEED)


def blockers(
    items: Iterable[QRItem], iteration: int, table: BlockingTable[Severity] = DEFAULT
) -> list[QRItem]:
    """Returns the items that block in an iteration, whatever their status is."""
    severities = blocking(iteration, table)
    return [item for item in items if item.severity in severities]


def _failure(action: QRAction, iteration: int) -> QRVerdict:
    return QRVerdict(QRStatus.FAIL, QRAction.ASK if iteration >= ITERATION_LIMIT else action)
