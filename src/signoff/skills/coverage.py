"""Steps that are repeated until a list has been worked through, such as files to be read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.skills.parts import MAX_ROUNDS, repeat_until


class Coverage(StrEnum):
    """How much of a list has been worked through, from least to most."""

    STARTED = "started"
    PARTIAL = "partial"
    COMPLETE = "complete"


CoverageLevel = Annotated[
    str,
    Arg("how much of the list is done", choices=tuple(each.value for each in Coverage)),
]

COVERAGE_SCALE = f"""\
At the end of each round, report `coverage`:
- `{Coverage.STARTED}`: less than half of the list is done.
- `{Coverage.PARTIAL}`: items of the list are still open.
- `{Coverage.COMPLETE}`: every item is done, and you have looked for items that the list lacks.
Below `{Coverage.COMPLETE}`, do another round on the open items; there are at most {MAX_ROUNDS}.
If the rounds do not suffice, write down which items are open: the final report names them. Once
you have reported `{Coverage.COMPLETE}`, the step is over: continue with the next one."""


def repeat_until_covered(
    ctx: StepContext, coverage: str, iteration: int
) -> tuple[Outcome, dict[str, Any]]:
    """Returns how a round ends: OK if the list is done or it was the last round, else ITERATE."""
    return repeat_until(coverage == Coverage.COMPLETE, ctx, iteration)
