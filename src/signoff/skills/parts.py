"""Parts that most skills have: the task they are about, and steps that are repeated.

A step is repeated until its result is settled or its rounds are used up, so that no agent can be
kept in it forever. Evaluated by hand, the round is a parameter; a run counts visits by itself.
"""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg, Param
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.skills.types import Confidence

MAX_ROUNDS = 5
"""How often a step is done at most, unless a skill sets another bound."""

TASK = Param("task", str, Arg("what to work on, in a sentence or two"), default=None)
"""The input of a skill: in a run, there is no conversation that an agent could take it from."""

NOTES_IN_REPLY = """\
If you cannot write files, your reply takes the place of the notes. Repeat in it what earlier
rounds of this step found, and read the results of earlier steps in place of files."""
"""For steps that keep notes in files: the agent of a run may be allowed only to read."""

ConfidenceLevel = Annotated[
    str,
    Arg("how well the result is supported", choices=tuple(each.value for each in Confidence)),
]

Iteration = Annotated[
    int,
    Arg("the round of this step; leave it out in a run, which counts", min=1, max=MAX_ROUNDS),
]

CONFIDENCE_SCALE = f"""\
At the end of each round, report `confidence`:
- `{Confidence.EXPLORING}`: there is no answer yet.
- `{Confidence.LOW}`: there is an answer, but a main point of it has no direct evidence.
- `{Confidence.MEDIUM}`: every main point has direct evidence, but a check that could refute one
  of them has not been made.
- `{Confidence.HIGH}`: every main point has direct evidence, and it passed the checks that could
  have refuted it.
- `{Confidence.CERTAIN}`: in addition, a second, independent way led to the same answer, and no
  question is open.
Below `{Confidence.HIGH}`, do another round on what is missing; there are at most {MAX_ROUNDS}.
Keep your notes and add to them. Once you have reported `{Confidence.HIGH}` or
`{Confidence.CERTAIN}`, the step is over: continue with the next one."""


def repeat_until(
    settled: bool, ctx: StepContext, iteration: int, bound: int = MAX_ROUNDS
) -> tuple[Outcome, dict[str, Any]]:
    """Returns how a round ends: OK if the result is settled or it was the last, else ITERATE."""
    last = max(iteration, ctx.visit) >= bound
    return (Outcome.OK if settled or last else Outcome.ITERATE), {}


def repeat_until_confident(
    ctx: StepContext, confidence: str, iteration: int
) -> tuple[Outcome, dict[str, Any]]:
    """Returns how a round of an investigation ends: OK from high confidence on."""
    return repeat_until(confidence in (Confidence.HIGH, Confidence.CERTAIN), ctx, iteration)
