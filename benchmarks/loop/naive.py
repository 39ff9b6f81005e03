"""The naive loop: every critic reads everything in every round, and the author rewrites it all.

It has no memory, no record and no retries. Its prompts are those of signoff's first round, in the
form for agents without a schema: other prompts would be another recall, and what is compared is
the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.loop.artifacts import Artifact
from benchmarks.loop.meter import Meter
from benchmarks.loop.outcome import LoopEnd
from benchmarks.loop.replies import critique, dumps, verdict
from benchmarks.loop.simulation import Alarm, Simulation
from signoff.core.effects import ProductPrompt
from signoff.core.severity import DEFAULT_BLOCK_ON
from signoff.review.pure.constraint import Constraint, Rule
from signoff.review.pure.parsing import parse_critique
from signoff.review.pure.prompts import (
    build_adjudicator_prompt,
    build_critic_prompt,
    build_generator_prompt,
)

ROUNDS = 6


async def naive_loop(artifact: Artifact, simulation: Simulation, meter: Meter) -> LoopEnd:
    """Reviews and rewrites until the judge approves, for six rounds at most."""
    text, approved, number = artifact.text, False, 0
    await meter.call("author", 1, _author(artifact), text)
    while not approved and number < ROUNDS:
        number += 1
        replies = await asyncio.gather(
            *(_review(simulation, meter, number, text, each) for each in constraints(artifact))
        )
        pursued, changes = await _judge(simulation, meter, number, text, dict(replies))
        approved = not changes
        if not approved:
            prompt = _author(artifact, previous=text, bill_of_work=changes, iteration=number + 1)
            text = simulation.fix(text, pursued, number)
            await meter.call("author", number, prompt, text)
    return LoopEnd(approved, number, text, asyncio.get_running_loop().time())


async def _review(
    simulation: Simulation, meter: Meter, number: int, text: str, constraint: Constraint
) -> tuple[str, list[Alarm]]:
    prompt = build_critic_prompt(
        goal=simulation.artifact.goal, artifact=text, constraint=constraint
    )
    alarms = simulation.review(text, constraint.id, number)
    simulation.reported(alarms)
    await meter.call("critic", number, _sent(prompt), dumps(critique({constraint.id: alarms})))
    return constraint.id, alarms


async def _judge(
    simulation: Simulation,
    meter: Meter,
    number: int,
    text: str,
    found: Mapping[str, Sequence[Alarm]],
) -> tuple[list[str], str]:
    """Returns the findings to fix and the changes to make; no changes mean approval."""
    decisions = [
        (f"{constraint}-{n:03}", alarm, not simulation.dismisses(alarm.ref, number))
        for constraint, alarms in found.items()
        for n, alarm in enumerate(alarms, start=1)
    ]
    prompt = build_adjudicator_prompt(
        goal=simulation.artifact.goal,
        artifact=text,
        constraints=constraints(simulation.artifact),
        critiques=[
            parse_critique(
                dumps(critique({name: alarms})), constraint_id=name, reviewer="critic", iteration=1
            )
            for name, alarms in found.items()
        ],
        block_on=DEFAULT_BLOCK_ON,
    )
    edits = simulation.literal_edits([alarm.ref for _name, alarm, _pursue in decisions], number)
    answer, changes = verdict(decisions, edits)
    await meter.call("judge", number, _sent(prompt), f"{dumps(answer)}\n\n{changes}")
    pursued = [alarm.ref for _name, alarm, pursue in decisions if pursue]
    return (pursued, changes) if answer["status"] == "REWRITE" else ([], "")


def constraints(artifact: Artifact) -> list[Constraint]:
    """Returns the constraints of an artifact, each with one rule."""
    return [
        Constraint(name, summary=summary, rules=(Rule(name, summary),))
        for name, summary in artifact.constraints.items()
    ]


def _author(artifact: Artifact, **later: Any) -> str:
    listed = constraints(artifact)
    return _sent(
        build_generator_prompt(goal=artifact.goal, sources="", constraints=listed, **later)
    )


def _sent(prompt: ProductPrompt) -> str:
    return f"{prompt.system or ''}\n{prompt}"
