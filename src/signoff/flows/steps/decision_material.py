"""What a human is shown who decides about a text: nobody decides about what they cannot see.

It is built once, from the run's state. The terminal, the page, REST, MCP and the run directory all
show these values, and the answer is bound to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.core.effects import ProductPrompt
from signoff.core.one_line import cut
from signoff.core.requests import Question
from signoff.core.words import FindingStatus
from signoff.flows.coverage import constraint_results
from signoff.flows.files.skipping import file_coverage
from signoff.flows.flow import Flow
from signoff.flows.state import FlowState
from signoff.flows.steps.updates import keep_answer
from signoff.review.artifact import ArtifactVersion, locate_finding
from signoff.review.constraint import Constraint
from signoff.review.coverage import describe_missed
from signoff.review.diff import unified_diff
from signoff.review.finding import Finding, blocking_first, describe_equal, group_equal
from signoff.review.findings import Ledger
from signoff.runtime.amounts import count, format_spend

OPEN_FINDINGS = "open findings"


def sign_off_material(ctx: StepContext, flow: Flow, state: FlowState) -> dict[str, Any]:
    """Returns what a human signs off: what is open, who read it, then the result itself."""
    by_status: dict[FindingStatus, list[Finding]] = {status: [] for status in FindingStatus}
    block_on = flow.config.adjudication.block_on
    findings = sorted(state.ledger.findings.values(), key=blocking_first(block_on))
    for each in findings:
        by_status[each.status].append(each)
    results = constraint_results(state.raw, state.content, findings, flow.by_id)
    missed = file_coverage(state.raw.get("skipped") or {}).missed
    # A human who approves should also see what will not be fixed, and who decided so.
    groups = {
        "fixed at your request": by_status[FindingStatus.ADDRESSED],
        "dismissed findings": by_status[FindingStatus.DISMISSED],
        "ignored findings": by_status[FindingStatus.IGNORED],
    }
    shown: dict[str, Any] = {
        OPEN_FINDINGS: finding_lines(state.content, by_status[FindingStatus.OPEN]),
        "goal": cut(flow.goal.text),
        "constraints": {each.constraint: each.words for each in results},
        "not read": [*describe_missed(missed, len(missed))],
        **{name: finding_lines(state.content, found) for name, found in groups.items()},
        **result_material(ctx, state),
    }
    if ctx.port is not None:
        shown["cost"] = format_spend(ctx.port.spend())
    return {name: value for name, value in shown.items() if value or name == OPEN_FINDINGS}


def result_material(ctx: StepContext, state: FlowState) -> dict[str, Any]:
    """Returns the text, or what was changed in files, or which files there are."""
    if not state.has_files:
        return {"artifact": state.artifact}
    # A reviewer of files wants to see what was changed. Whole files would hide it.
    diff = unified_diff(ctx.workflow_params["files"], state.files)
    return {"changes": diff} if diff else {"files": [*state.files]}


def judging_material(
    flow: Flow, state: FlowState, constraints: Iterable[str], paths: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the goal, the rules and the text, for a human in the place of a critic or judge."""
    headed = "\n".join(f"--- {path}\n{state.files[path]}" for path in paths if path in state.files)
    text = headed if state.has_files else state.artifact
    rules = [_rules(flow.by_id[name]) for name in dict.fromkeys(constraints) if name in flow.by_id]
    material = {"goal": flow.goal.text, "rules": "\n\n".join(rules), "artifact": text}
    return {name: cut(value) for name, value in material.items() if value}


def findings_material(flow: Flow, state: FlowState, ids: Iterable[str]) -> dict[str, Any]:
    """Returns the same for a human who decides about findings, which name their files and lines."""
    known = state.ledger.findings
    return judging_material(flow, state, [known[each].constraint for each in ids if each in known])


async def ask_about_findings(
    ctx: StepContext,
    flow: Flow,
    state: FlowState,
    question_id: str,
    prompt: str,
    ids: Sequence[str],
) -> dict[str, Any]:
    """Asks an open question about findings, of a human unless the flow lets agents answer.

    Returns the update that stores the answer, and ties it to the findings.
    """
    question = Question(
        ProductPrompt(prompt),
        question_id=question_id,
        answerable_by=flow.config.adjudication.answerable_by,
        shown=findings_material(flow, state, ids),
    )
    update = keep_answer(ctx, question_id, prompt, await ctx.wait(question, key=question_id))
    (entry,) = update["human"]
    # Without the tie, the same finding would be asked about again in the next round.
    return {**update, "findings": state.ledger.decide(ids, str(entry["answer"])).to_json()}


def describe_open(ledger: Ledger) -> str:
    """Returns how many findings are open: `2 findings open (1 HIGH, 1 LOW)`."""
    found = ledger.open()
    if not found:
        return "no findings open"
    severities = [each.severity.value for each in found]
    listed = ", ".join(f"{severities.count(name)} {name}" for name in dict.fromkeys(severities))
    return f"{count(len(found), 'finding')} open ({listed})"


def finding_lines(content: ArtifactVersion, findings: Iterable[Finding]) -> list[str]:
    """Returns findings in lines; those that say the same about equal passages share one."""
    lines = []
    for group in group_equal(findings):
        first = group[0]
        why = first.reason or first.decision
        reason = f" ({' '.join(why.split())})" if why else ""
        also = f"; {describe_equal(group)}" if len(group) > 1 else ""
        lines.append(f"{finding_line(content, first)}{reason}{also}")
    return lines


def finding_line(content: ArtifactVersion, finding: Finding) -> str:
    """Returns a finding on one line, in the form that editors and CI systems recognize."""
    where = locate_finding(content, finding)
    place = f"{where.path}:{where.line}" if where is not None else finding.path
    if where is not None and not where.path:
        place = f"line {where.line}"
    rule = f"{finding.constraint}/{finding.rule}"
    if finding.rule in ("", finding.constraint):
        rule = finding.constraint
    doubt = " (unverified)" if finding.unverified else ""
    text = " ".join(finding.finding.split())
    line = f"{finding.severity.value} {rule}: {text}{doubt} [{finding.id}]"
    # What a check says about the project is about no file.
    return f"{place}: {line}" if place else line


def _rules(constraint: Constraint) -> str:
    """Returns a constraint as its author worded it."""
    lines = [f"- {rule.id}: {rule.text}" for rule in constraint.rules]
    return "\n".join([f"{constraint.id}: {constraint.summary}", *lines])
