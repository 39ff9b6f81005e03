"""The naive loop: every critic reads everything in every round, and the author rewrites it all.

It has no memory, no record and no retries. Its prompts are written as one would by hand, and ask
for the same answers as signoff does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from benchmarks.loop.artifacts import Artifact
from benchmarks.loop.meter import Meter
from benchmarks.loop.outcome import LoopEnd
from benchmarks.loop.replies import critique, dumps, verdict
from benchmarks.loop.simulation import Alarm, Simulation

ROUNDS = 6

_CRITIC = """You review the artifact below against one constraint. Report every violation of it \
and nothing else. Quote the passage word for word. Answer with JSON only:

{"overall": "PASS or FAIL", "issues": [{"id": "<constraint>-001", "rule_id": "...", "severity": \
"CRITICAL, HIGH, MEDIUM or LOW", "location": "...", "finding": "what is wrong", "impact": "what \
goes wrong if it stays", "evidence": "the exact passage", "suggested_fix": "the text that should \
replace it", "confidence": 0.9}], "approved_sections": [], "summary": "one sentence"}

Use CRITICAL for what does serious harm, HIGH for what must be fixed before publication, MEDIUM \
for what should be fixed, and LOW for details. PASS means that nothing has to change.
"""
_JUDGE = """You are the editor in chief. Critics have reviewed the artifact below. Decide about \
each issue: pursue it if it is true and matters for the goal, otherwise dismiss it and say why. \
Answer with JSON and then the list of changes:

{"status": "APPROVED or REWRITE", "decisions": [{"issue_id": "...", "constraint": "...", \
"severity": "...", "status": "pursuing or dismissed", "flagged_by": ["..."], \
"competing_constraint": null, "rationale": "...", "guidance": "..."}]}

APPROVED is allowed only if no CRITICAL or HIGH issue is pursued. Write one entry for each change: \
"### Issue: id (SEVERITY)", what is wrong, and the new text.
"""
_AUTHOR = """Write the artifact below again with all changes of the list made and nothing else \
changed. Answer with the whole artifact and nothing else.
"""


async def naive_loop(artifact: Artifact, simulation: Simulation, meter: Meter) -> LoopEnd:
    """Reviews and rewrites until the judge approves, for six rounds at most."""
    text, approved, number = artifact.text, False, 0
    goal = f"# Goal\n\n{artifact.goal}\n"
    await meter.call("author", 1, f"Write the artifact.\n\n{goal}\n{_listed(artifact)}", text)
    while not approved and number < ROUNDS:
        number += 1
        replies = await asyncio.gather(
            *(
                _review(simulation, meter, number, text, goal, constraint)
                for constraint in artifact.constraints
            )
        )
        pursued, changes = await _judge(simulation, meter, number, text, goal, dict(replies))
        approved = not changes
        if not approved:
            prompt = (
                f"{_AUTHOR}\n{goal}\n{_listed(artifact)}\n{_shown(text)}\n# Changes\n\n{changes}\n"
            )
            text = simulation.fix(text, pursued, number)
            await meter.call("author", number, prompt, text)
    return LoopEnd(approved, number, text, asyncio.get_running_loop().time())


async def _review(
    simulation: Simulation, meter: Meter, number: int, text: str, goal: str, constraint: str
) -> tuple[str, list[Alarm]]:
    summary = simulation.artifact.constraints[constraint]
    prompt = f"{_CRITIC}\n{goal}\n{_shown(text)}\n# Constraint: {constraint}\n\n{summary}\n"
    alarms = simulation.review(text, constraint, number)
    simulation.reported(alarms)
    await meter.call("critic", number, prompt, dumps(critique({constraint: alarms})))
    return constraint, alarms


async def _judge(
    simulation: Simulation,
    meter: Meter,
    number: int,
    text: str,
    goal: str,
    found: Mapping[str, Sequence[Alarm]],
) -> tuple[list[str], str]:
    """Returns the findings to fix and the changes to make; no changes mean approval."""
    decisions = [
        (f"{constraint}-{n:03}", alarm, not simulation.dismisses(alarm.ref, number))
        for constraint, alarms in found.items()
        for n, alarm in enumerate(alarms, start=1)
    ]
    reviews = "\n\n".join(dumps(critique({name: alarms})) for name, alarms in found.items())
    edits = simulation.literal_edits([alarm.ref for _name, alarm, _pursue in decisions], number)
    answer, changes = verdict(decisions, edits)
    prompt = f"{_JUDGE}\n{goal}\n{_shown(text)}\n# Reviews\n\n{reviews}\n"
    await meter.call("judge", number, prompt, f"{dumps(answer)}\n\n{changes}")
    pursued = [alarm.ref for _name, alarm, pursue in decisions if pursue]
    return (pursued, changes) if answer["status"] == "REWRITE" else ([], "")


def _shown(text: str) -> str:
    return f"# Artifact\n\n{text}\n"


def _listed(artifact: Artifact) -> str:
    lines = (f"- {name}: {summary}\n" for name, summary in artifact.constraints.items())
    return f"# Constraints\n\n{''.join(lines)}"
