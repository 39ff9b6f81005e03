"""Parts that many skills have: their task, texts for common steps, and how a step is repeated.

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
The result of a round replaces that of the one before, so repeat in it what still holds. Once you
have reported `{Confidence.HIGH}` or `{Confidence.CERTAIN}`, the step is over: continue with the
next one."""

FIX_FINDINGS = """\
A reviewer found something wrong. The findings are the items with the status FAIL in
`qr-{phase}.json` in the state directory, and the reviewer's answer. Each says what has to be true
for it to pass.

Do:
1. Read all failed items before you change anything. Look for a common cause.
2. Check each finding at the place it names. If it is right, fix {what} so that the item passes.
3. If it is wrong, leave {what} as it is, and write into `{notes}`, where the reviewer will read
   it, the evidence against the finding. Evidence is a line, an output or a rule; not an opinion.
4. Look for the same mistake in places that the reviewer did not name, and fix those too.
5. Check that items which passed before still would.

Done when each failed item is fixed or answered, and you have checked it the way the reviewer
will.

Do not edit `qr-{phase}.json`: reviewers record results, authors do not. Do not delete the part
that was criticized in place of fixing it, and do not start over.

Write into `{notes}`: for each item what you changed. The review follows again."""
"""For the step after a failed review, which changes `what` and may answer in `notes`."""


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
