"""Quality-review (QR) gates: checks recorded one by one, and a verdict that goes by the records.

A review is split into items once. Reviewers verify items and record the results in the file
`qr-<phase>.json` of the skill's state directory. What passes is decided by these records, never
by a reviewer's word. Names are loaded when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff._lazy import exported_names

if TYPE_CHECKING:
    from signoff.skills.qr.gate import QRGate as QRGate
    from signoff.skills.qr.items import ItemStatus as ItemStatus
    from signoff.skills.qr.items import QRItem as QRItem
    from signoff.skills.qr.items import Severity as Severity
    from signoff.skills.qr.judging import DEFAULT as DEFAULT
    from signoff.skills.qr.judging import ITERATION_LIMIT as ITERATION_LIMIT
    from signoff.skills.qr.judging import QRAction as QRAction
    from signoff.skills.qr.judging import QRVerdict as QRVerdict
    from signoff.skills.qr.judging import blocking as blocking
    from signoff.skills.qr.judging import judge as judge
    from signoff.skills.qr.record_file import judge_file as judge_file
    from signoff.skills.qr.record_file import qr_file as qr_file
    from signoff.skills.qr.record_file import record as record
    from signoff.skills.types import QRStatus as QRStatus

_HOMES = {
    "signoff.skills.qr.gate": "QRGate",
    "signoff.skills.qr.items": "ItemStatus QRItem Severity",
    "signoff.skills.qr.judging": "DEFAULT ITERATION_LIMIT QRAction QRVerdict blocking judge",
    "signoff.skills.qr.record_file": "judge_file qr_file record",
    "signoff.skills.types": "QRStatus",
}
__all__, __getattr__, __dir__ = exported_names(__name__, _HOMES)
