"""A step that passes only if the recorded items of a quality review pass.

In a run, the gate has the review split into items once, has the items that are due verified in
parallel, one sub-agent for each group, and then goes by the records. What is read from the file
is recorded in the run, so that a resume finds the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from signoff.core.context import StepContext
from signoff.core.one_line import one_line
from signoff.core.outcome import Outcome
from signoff.core.questions import Option
from signoff.core.requests import Answer, Choice
from signoff.core.step import HandlerFunction, Result, StepDef
from signoff.documents.control_characters import escape_controls
from signoff.errors import UnreadableFile
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.qr.items import ItemStatus, QRItem
from signoff.skills.qr.judging import ITERATION_LIMIT, QRAction, judge
from signoff.skills.qr.record_file import PHASE, Baseline, begin_round, qr_file, read_record
from signoff.skills.state import need_state_dir
from signoff.skills.types import QRStatus

SCRIPT = "signoff.skills.quality_review"

ROUNDS = 3
"""How often items are verified in one visit before a human decides about those without a result."""

LONGEST_FINDING = 1_000
"""Characters of a finding that a human is shown; the file has all of it."""

REMOVED = "the item was removed from the file"

_ACCEPT = "accept"
_REDO, _VERIFY = QRAction.REDO.value, QRAction.VERIFY.value


@dataclass(frozen=True, kw_only=True)
class QRGate(Dispatch):
    """A handler that has a phase reviewed: OK if its items pass, FAIL if the work must be redone.

    The workflow needs `STATE_DIR` as an input. After a few tries a human decides, who is shown
    every finding.
    """

    phase: str
    """What is reviewed, such as `plan-design`; the items are in `qr-<phase>.json`."""
    agent: AgentRole | str = AgentRole.QUALITY_REVIEWER
    script: str = SCRIPT

    def __post_init__(self) -> None:
        """Completes the script with the phase, so that every surface shows the whole command."""
        super().__post_init__()
        if not PHASE.fullmatch(self.phase):
            raise ValueError(f"phase={self.phase!r} must be lowercase words joined by '-'")
        if self.free_form:
            raise ValueError("a quality review needs a verdict; free_form=True gives none")
        if self.for_each:
            raise ValueError("a quality review has its own items; leave out for_each")
        if len(self.script.split()) == 1:
            object.__setattr__(self, "script", f"{self.script} {_option('phase', self.phase)}")

    def function(self, step: StepDef) -> HandlerFunction:
        """Returns a function that has the phase reviewed and goes by what was recorded."""

        async def handler(ctx: StepContext) -> Result:
            path = qr_file(need_state_dir(ctx.workflow_params), self.phase)
            names = (f"{ctx.run}/{ctx.step_id}/{ctx.visit}/{number}" for number in count(1))
            verdict: dict[str, Any] = ctx.step_state.get(step.id) or {}
            while True:
                verdict = await self._review(step, ctx, path, names, verdict)
                if verdict["action"] == QRAction.PROCEED:
                    return Outcome.OK, {step.id: verdict}
                if verdict["action"] == QRAction.REDO and ctx.visit < ITERATION_LIMIT:
                    return Outcome.FAIL, {step.id: verdict}
                answer = await ctx.wait(_decision(self.phase, verdict), key="decide")
                if answer.value != _VERIFY:
                    return _decided(step, verdict, answer)

        return handler

    async def _review(
        self,
        step: StepDef,
        ctx: StepContext,
        path: Path,
        names: Iterator[str],
        verdict: dict[str, Any],
    ) -> dict[str, Any]:
        """Has everything that is due verified; returns the verdict and what it rests on.

        `names` are those of the rounds, `verdict` is the one before.
        """
        for _ in range(ROUNDS):
            found = await _once(ctx, "round", partial(_begin, path, next(names), verdict))
            if found is None:
                await self._reviewer("items").function(step)(ctx)  # type: ignore[misc]  # is async
                found = await _once(ctx, "round", partial(_begin, path, next(names), {}))
            groups = found["groups"] if found is not None else []
            reports = await ctx.map(groups, self._verifier(step), key="verify", retries=1)
            failed = any(report["status"] == QRStatus.FAIL for report in reports)
            reported = QRStatus.FAIL.value if failed else None
            verdict = await _once(ctx, "verdict", partial(_verdict, path, reported, found))
            if verdict["action"] != QRAction.VERIFY:
                break
        return verdict

    def _verifier(self, step: StepDef) -> Any:
        async def verify(ctx: StepContext, group: str) -> dict[str, Any]:
            returned = self._reviewer("group", group).function(step)(ctx)
            _, update = await returned  # type: ignore[misc]  # a dispatch is async
            report: dict[str, Any] = update[step.id]
            return report

        return verify

    def _reviewer(self, option: str, value: str = "") -> Dispatch:
        """Returns the dispatch of one sub-agent, which runs the script with one more option."""
        own = {each.name: getattr(self, each.name) for each in fields(Dispatch)}
        return Dispatch(**own | {"script": f"{self.script} {_option(option, value)}"})


def _option(name: str, value: str = "") -> str:
    return f"--{name} {shlex.quote(value)}" if value else f"--{name}"


async def _once(ctx: StepContext, key: str, call: Any) -> Any:
    """Calls a function that reads or changes the file, once: a resume gets its recorded result."""
    (result,) = await ctx.map([key], lambda _ctx, _key: call(), key=key)
    return result


def _begin(path: Path, name: str, last: Mapping[str, Any]) -> dict[str, Any] | None:
    """Begins a round; returns what is to be verified, or None if there are no usable items yet.

    Agents can write to the file, so the run goes by its own `last` verdict: only what was
    verified in this run has passed, and no item that it has seen is dropped or matters less.
    """
    passed = last.get("passed", {})
    known = Baseline(last.get("iteration", 1), passed)
    try:
        found = begin_round(path, work_changed=True, name=name, known=known)
    except UnreadableFile:
        return None
    items = {item.id: item.severity.value for item in found.items}
    failed = {each["id"]: each["severity"] for each in last.get("findings", ())}
    return {
        "groups": [*found.due()],
        "iteration": found.iteration,
        "items": {**items, **failed, **passed},
    }


def _verdict(path: Path, reported: str | None, begun: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the verdict as the run's state has it.

    The file has the results; what is checked, and in which iteration, is as the round began.
    """
    try:
        found = {item.id: item for item in read_record(path).items}
        if begun is None:
            raise UnreadableFile(f"{path} had no usable items when the round began")
    except UnreadableFile as error:
        ask = {"status": QRStatus.FAIL.value, "action": QRAction.ASK.value}
        return {**ask, "notes": str(error), "findings": []}
    severities = {**{item.id: item.severity for item in found.values()}, **begun["items"]}
    items = [
        replace(found.get(name) or QRItem(name, finding=REMOVED), severity=severity)
        for name, severity in severities.items()
    ]
    verdict = judge(items, begun["iteration"], reported)
    listed = [item for item in items if item.status is not ItemStatus.PASS]
    findings = [
        {
            "id": item.id,
            "severity": item.severity.value,
            "status": item.status.value,
            "check": item.check,
            "finding": item.finding or "",
        }
        for item in listed
    ]
    return {
        "status": verdict.status.value,
        "action": verdict.action.value,
        "notes": f"round {begun['iteration']}, {len(listed)} of {len(items)} items did not pass",
        "findings": findings,
        "iteration": begun["iteration"],
        "passed": {
            item.id: item.severity.value for item in items if item.status is ItemStatus.PASS
        },
    }


def _decision(phase: str, verdict: dict[str, Any]) -> Any:
    """Returns the request to a human, with every finding on a line of its own."""
    lines = [
        f"- {each['id']} ({each['severity']}, {each['status']}): "
        + escape_controls(one_line(each["finding"] or each["check"], LONGEST_FINDING))
        for each in verdict["findings"]
    ]
    prompt = f"The quality review of {phase} did not pass: {verdict['notes']}."
    options = [Option(_REDO), Option(_VERIFY), Option(_ACCEPT)]
    return Choice("\n".join([prompt, *lines]), options)


def _decided(step: StepDef, verdict: dict[str, Any], answer: Answer) -> Result:
    decided = {**verdict, "decision": str(answer.value), "comment": answer.text}
    return (Outcome.OK if answer.value == _ACCEPT else Outcome.FAIL), {step.id: decided}
