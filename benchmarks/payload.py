"""The texts of the workloads: the same for every contestant, but no text is used twice."""

from __future__ import annotations

STEP_CHARS = 2048
"""What a step, a critique or an agent returns."""

ARTIFACT = 4096
"""The artifact in the state of the chain and of the review loop."""

BIG_ARTIFACT = 20480
"""The artifact of the long run."""

LINE = 64
"""Characters of one line; texts hold line ends, as real ones do."""


def text(seed: int, chars: int = STEP_CHARS) -> str:
    """Returns a text of that length, different for every seed."""
    return f"{seed:0{LINE - 1}d}\n" * (chars // LINE)


def step_name(number: int) -> str:
    """Returns the name of step number `number`."""
    return f"step-{number}"
