"""The prompts for authors, critics, judges and fixers, filled into their templates.

The texts are in `templates/`; here the material is formatted for them. Material is enclosed in
delimiters that contain its digest, so no text can imitate the end of its own enclosure. In the
prompts of critics the parts that all of them share come first and the constraint comes last, so
that a provider's prompt cache processes the artifact only once.

A recorded reply is found again by the material of its prompt and not by our wording, which may
change between versions. So the names and the form of the material are part of recorded runs and
must not change. What is derived from the recorded state is left out of it.

In the schemas of structured answers, the order of the keys is the order in which a model writes:
evidence before the finding, reasons before the verdict, so that a verdict follows from what was
written before it. Every key is required and no other is allowed, which is what vendors' strict
modes demand; optional values are null. The prompt says what each key means, and a schema is paid
for like a prompt, so it does not say it again.

A flow can replace the templates by its own. They are written in the language of
`signoff.documents.templates`; `REQUIRED` has which templates there are and what each of them needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from signoff.core.effects import ProductPrompt
from signoff.core.severity import DEFAULT_BLOCK_ON, SEVERITIES, Severity
from signoff.documents.templates import render_text, variables_of
from signoff.review.pure.constraint import Constraint, compress_constraints
from signoff.review.pure.critique import (
    DEFAULT_MAX_FINDINGS,
    Critique,
    CritiqueIssue,
    Overall,
    Pursuit,
    Verdict,
)
from signoff.review.pure.prompt_text import (
    ConstraintMaterial,
    Guidance,
    bullets,
    constraint_line,
    enclose,
    flat,
    format_critiques,
    format_guidance,
    format_rule,
    format_tension,
    full_constraint,
    sentences,
    within_budget,
)
from signoff.review.pure.review_scope import ShownFile
from signoff.review.pure.work_order import EditKind

_TEXT = {"type": "string"}
_OPTIONAL = {"type": ["string", "null"]}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": [str(value) for value in values]}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_EDIT = _object(kind=_one_of(*EditKind), find=_TEXT, text=_TEXT)

_ISSUE = _object(
    evidence=_TEXT,
    finding=_TEXT,
    impact=_TEXT,
    rule_id=_TEXT,
    severity=_one_of(*Severity),
    location=_TEXT,
    suggested_fix=_OPTIONAL,
    confidence={"type": "number"},
    edit={"anyOf": [_EDIT, {"type": "null"}]},
)


def _critique(issue: dict[str, Any]) -> dict[str, Any]:
    return _object(
        issues=_list(issue),
        approved_sections=_list(_object(location=_TEXT, note=_TEXT)),
        withdrawn=_list(_object(id=_TEXT, reason=_TEXT)),
        summary=_TEXT,
        overall=_one_of(Overall.PASS, Overall.FAIL),
    )


CRITIQUE_SCHEMA = _critique(_ISSUE)
"""What a critic answers: issues first, then the verdict. The engine gives each issue its id."""

FILES_CRITIQUE_SCHEMA = _critique(_object(path=_TEXT, **_ISSUE["properties"]))
"""What a critic of files answers: each issue names its file."""

_DECISION = _object(
    issue_id=_TEXT,
    rationale=_TEXT,
    guidance=_OPTIONAL,
    competing_constraint=_OPTIONAL,
    status=_one_of(*Pursuit),
)

ADJUDICATION_SCHEMA = _object(
    decisions=_list(_DECISION),
    bill_of_work=_TEXT,
    status=_one_of(Verdict.APPROVED, Verdict.REWRITE),
)
"""What a judge answers: decisions and the work order first, then the verdict."""

CONFIRMATION_SCHEMA = _object(reason=_TEXT, confirmed={"type": "boolean"})
"""What the agent answers that confirms a finding: the reason first."""


_OF_CONSTRAINT = re.compile(r"\{\{\s*(?:#(?:if|unless)\s+)?(?:constraints?|known|several)\s*\}\}")
"""The tags of a critic's prompt that are not the same for all critics of a step."""

Templates = Mapping[str, str]
"""The templates that a flow replaces, by name."""
NO_TEMPLATES: Templates = MappingProxyType({})


def build_generator_prompt(
    *,
    goal: str,
    sources: str,
    constraints: Sequence[Constraint],
    previous: str = "",
    bill_of_work: str = "",
    guidance: Sequence[Guidance] = (),
    feedback: str = "",
    iteration: int = 1,
    already_applied: bool = False,
    findings: Sequence[str] = (),
    approved: Sequence[str] = (),
    templates: Templates = NO_TEMPLATES,
) -> ProductPrompt:
    """Returns the prompt for the author of an artifact, for the first or a later version."""
    values = {
        "to_do": _flag(bool(bill_of_work) and not already_applied),
        "done": _flag(bool(bill_of_work) and already_applied),
        "again": _flag(bool(previous) and not bill_of_work),
        "round": str(iteration),
        "goal": goal.strip(),
        "sources": enclose("SOURCES", sources),
        "constraints": compress_constraints(constraints).strip(),
        "previous": enclose("PREVIOUS", previous),
        "bill_of_work": enclose("BILL_OF_WORK", bill_of_work),
        "findings": enclose("FINDINGS", "\n\n".join(findings)),
        "approved": enclose("APPROVED", bullets(approved)),
        "guidance": format_guidance(guidance),
        "feedback": feedback.strip(),
    }
    material = {
        "goal": goal,
        "sources": sources,
        "constraints": list(map(_constraint_json, constraints)),
        "previous": previous,
        "bill_of_work": bill_of_work,
        "guidance": _texts(guidance, feedback),
        "round": iteration,
    }
    return _prompt(("author", "author_system"), values, material, templates)


def brief_prompt(
    *,
    goal: str,
    sources: str,
    bill_of_work: str = "",
    guidance: Sequence[Guidance] = (),
    feedback: str = "",
    templates: Templates = NO_TEMPLATES,
) -> ProductPrompt:
    """Returns the prompt for a small model: the goal and what to fix, and nothing else.

    It does not contain the previous version or a format, and the model writes again from the
    goal. A very small model copies a text that it sees, and writes about formats if there are
    instructions about formats.
    """
    values = {
        "goal": goal.strip(),
        "sources": sources.strip(),
        "changes": " ".join([*sentences(bill_of_work), *map(flat, _texts(guidance, feedback))]),
    }
    material = {
        "goal": goal,
        "sources": sources,
        "bill_of_work": bill_of_work,
        "guidance": _texts(guidance, feedback),
    }
    return _prompt(("author_brief",), values, material, templates)


def build_critic_prompt(
    *,
    goal: str,
    artifact: str,
    constraint: Constraint,
    sources: str = "",
    analysis: str = "",
    also: Sequence[ConstraintMaterial] = (),
    guidance: Sequence[Guidance] = (),
    known: Sequence[str] = (),
    goal_sources: str = "",
    structured: bool = False,
    max_findings: int = DEFAULT_MAX_FINDINGS,
    block_on: Iterable[Severity] = DEFAULT_BLOCK_ON,
    files: Sequence[ShownFile] = (),
    intent: str = "",
    templates: Templates = NO_TEMPLATES,
) -> ProductPrompt:
    """Returns the prompt for a critic; its beginning is the same for all constraints.

    With `also`, the critic reviews against several constraints at once, and names each rule with
    its constraint. With `files`, the artifact is these files, and each issue names its file.
    """
    # What depends on the constraint comes last in the prompt, and the material before it is the
    # same for all critics, so a provider's cache reads it once.
    every = [ConstraintMaterial(constraint, sources, analysis), *also]
    values = {
        "text_reply": _flag(not structured),
        "severity_names": " or ".join(SEVERITIES.rsplit(", ", 1)),
        "severities": fill(_template("severities", templates), {}).strip(),
        "max_findings": str(max_findings * len(every)),
        "blocking": " or ".join(block_on),
        "goal": enclose("GOAL", within_budget(goal)),
        "goal_sources": enclose("GOAL_SOURCES", goal_sources),
        "artifact": _artifact(artifact, files),
        "files": _flag(bool(files)),
        "changes": _flag(any(each.diff for each in files)),
        "intent": enclose("INTENT", intent),
        "guidance": format_guidance(guidance),
        "several": _flag(bool(also)),
        "constraint": " and ".join(", ".join(c.constraint.id for c in every).rsplit(", ", 1)),
        "constraints": "\n\n".join(
            full_constraint("# Constraint", each, qualified=bool(also), above=goal_sources)
            for each in every
        ),
        "known": enclose("KNOWN", bullets(known)),
    }
    material = {
        "goal": goal,
        "artifact": artifact,
        "constraint": _constraint_json(constraint),
        "sources": sources,
        "analysis": analysis,
        "also": [[_constraint_json(c.constraint), c.sources, c.analysis] for c in also],
        "guidance": _texts(guidance),
        "files": [list(each) for each in files],
        "intent": intent,
    }
    names = ("critic", "critic_system", "severities")
    schema = FILES_CRITIQUE_SCHEMA if files else CRITIQUE_SCHEMA
    prompt = _prompt(names, values, material, templates, schema, structured=structured)
    prompt.shared = _shared_length(prompt, _template("critic", templates), values)
    return prompt


def build_adjudicator_prompt(
    *,
    goal: str,
    artifact: str,
    constraints: Sequence[Constraint],
    critiques: Sequence[Critique],
    block_on: Iterable[Severity],
    tensions: Sequence[tuple[str, str, str]] = (),
    instructions: str = "",
    guidance: Sequence[Guidance] = (),
    known: Sequence[str] = (),
    held_back_by: Sequence[str] = (),
    disputed_sources: Mapping[str, str] = MappingProxyType({}),
    structured: bool = False,
    files: Sequence[ShownFile] = (),
    templates: Templates = NO_TEMPLATES,
) -> ProductPrompt:
    """Returns the prompt for a judge; a tension is an axis, guidance and the winner."""
    blocking = list(block_on)
    with_issues = {critique.constraint_id for critique in critiques if critique.issues}
    disputed = [each for each in constraints if each.id in with_issues]
    others = [each for each in constraints if each.id not in with_issues]
    # The sources of the goal have an empty name.
    above = disputed_sources.get("", "") if disputed else ""
    values = {
        "text_reply": _flag(not structured),
        "blocking": ", ".join(blocking) or "none",
        "goal": enclose("GOAL", within_budget(goal)),
        "goal_sources": enclose("GOAL_SOURCES", above),
        "artifact": _artifact(artifact, files),
        "disputed": "\n\n".join(
            full_constraint(
                "##", ConstraintMaterial(c, disputed_sources.get(c.id, "")), above=above
            )
            for c in disputed
        ),
        "constraints": "\n".join(map(constraint_line, others)),
        "tensions": "\n".join(format_tension(*tension) for tension in tensions),
        "instructions": instructions.strip(),
        "guidance": format_guidance(guidance),
        "known": enclose("KNOWN", bullets(known)),
        "held_back_by": ", ".join(held_back_by),
        "not_reported_again": _flag(any(i.not_reported_again for c in critiques for i in c.issues)),
        "critiques": enclose("CRITIQUES", format_critiques(critiques, blocking))
        or "There are no critiques.",
    }
    material = {
        "goal": goal,
        "artifact": artifact,
        "constraints": list(map(_constraint_json, constraints)),
        "critiques": list(map(_critique_json, critiques)),
        "block_on": blocking,
        "tensions": [list(tension) for tension in tensions],
        "instructions": instructions,
        "guidance": _texts(guidance),
        "files": [list(each) for each in files],
    }
    names = ("judge", "judge_system")
    return _prompt(names, values, material, templates, ADJUDICATION_SCHEMA, structured=structured)


def build_refinement_prompt(
    *,
    filename: str,
    bill_of_work: str,
    goal: str,
    guidance: Sequence[Guidance] = (),
    feedback: str = "",
    constraints: Sequence[Constraint] = (),
    findings: Sequence[str] = (),
    approved: Sequence[str] = (),
    unchanged_before: bool = False,
    sources: str = "",
    templates: Templates = NO_TEMPLATES,
) -> ProductPrompt:
    """Returns the prompt for an agent that fixes the artifact's file in place."""
    values = {
        "filename": filename,
        "unchanged_before": _flag(unchanged_before),
        "goal": enclose("GOAL", within_budget(goal)),
        "constraints": compress_constraints(constraints).strip(),
        "bill_of_work": enclose("BILL_OF_WORK", bill_of_work),
        "sources": enclose("SOURCES", sources),
        "findings": enclose("FINDINGS", "\n\n".join(findings)),
        "approved": enclose("APPROVED", bullets(approved)),
        "guidance": format_guidance(guidance),
        "feedback": feedback.strip(),
    }
    material = {
        "filename": filename,
        "bill_of_work": bill_of_work,
        "goal": goal,
        "guidance": _texts(guidance),
        "feedback": feedback,
    }
    return _prompt(("fixer", "fixer_system"), values, material, templates)


def verifier_prompt(
    *,
    goal: str,
    passage: str,
    constraint: Constraint,
    issue: CritiqueIssue,
    sources: str = "",
    structured: bool = False,
    templates: Templates = NO_TEMPLATES,
) -> ProductPrompt:
    """Returns the prompt for the agent that confirms a finding before it blocks."""
    rules = [rule for rule in constraint.rules if rule.id == issue.rule_id] or constraint.rules
    details = {"Evidence": issue.evidence, "Location": issue.location, "Impact": issue.impact}
    claim = [issue.finding, *(f"{name}: {text}" for name, text in details.items() if text)]
    values = {
        "text_reply": _flag(not structured),
        "goal": enclose("GOAL", within_budget(goal)),
        "passage": enclose("PASSAGE", passage),
        "constraint": constraint.id,
        "rules": "\n".join(map(format_rule, rules)) or constraint.summary.strip(),
        "sources": enclose("SOURCES", sources),
        "claim": enclose("CLAIM", "\n".join(claim)),
    }
    material = {
        "passage": passage,
        "constraint": _constraint_json(constraint),
        "claim": [issue.rule_id, issue.finding, issue.evidence, issue.location],
    }
    names = ("verifier", "verifier_system")
    return _prompt(names, values, material, templates, CONFIRMATION_SCHEMA, structured=structured)


def _prompt(
    names: Sequence[str],
    values: Mapping[str, str],
    material: Mapping[str, Any],
    templates: Templates,
    schema: dict[str, Any] | None = None,
    *,
    structured: bool = False,
) -> ProductPrompt:
    """Fills the templates of a role; the first one is the prompt, the second its system prompt."""
    text, *system = (fill(_template(name, templates), values) for name in names[:2])
    # Empty material is left out, so that a later release can add a field without changing what
    # identifies the requests of recorded runs.
    identity = {name: value for name, value in material.items() if value}
    # A user's template is not our wording: another one is another request.
    if own := {name: templates[name] for name in names if name in templates}:
        identity["templates"] = own
    return ProductPrompt(
        text,
        identity,
        system=system[0].strip() if system else None,
        schema=schema if structured else None,
        stated=None if structured else schema,
    )


def _artifact(text: str, files: Sequence[ShownFile]) -> str:
    """Returns the artifact between delimiters: one text, or each file by itself."""
    shown = "\n\n".join(each.enclosed for each in files) or enclose("ARTIFACT", text)
    return shown or "The artifact is empty."


def _shared_length(prompt: str, template: str, values: Mapping[str, str]) -> int:
    """Returns how many characters come before the first line that depends on the constraint."""
    # A user's own template may put the constraint anywhere. Only what comes before it is shared.
    first = _OF_CONSTRAINT.search(template)
    head, line_break, _ = template[: first.start() if first else 0].rpartition("\n")
    shared = fill(head, values) if line_break else ""
    return len(shared) if prompt.startswith(shared) else 0


def _template(name: str, templates: Templates) -> str:
    return templates.get(name) or built_in(name)


def _flag(value: bool) -> str:
    return "yes" if value else ""


def _texts(guidance: Sequence[Guidance], feedback: str = "") -> list[str]:
    """Returns decisions of humans and feedback in the form that identifies recorded requests."""
    return [*(each.text for each in guidance), *([feedback] if feedback else [])]


def _constraint_json(constraint: Constraint) -> list[Any]:
    """Returns what identifies a constraint; the order is part of recorded runs."""
    rules = [[r.id, r.default_severity, r.text, r.violation, r.compliant] for r in constraint.rules]
    return [constraint.id, constraint.priority, constraint.summary, rules]


def _critique_json(critique: Critique) -> list[Any]:
    """Returns what identifies a critique; the order is part of recorded runs."""
    issues = [
        [i.id, i.severity, i.finding, i.evidence, i.suggested_fix, i.unverified]
        for i in critique.issues
    ]
    return [critique.constraint_id, critique.reviewer, critique.overall, issues]


REQUIRED: Mapping[str, frozenset[str]] = {
    "author": frozenset({"goal"}),
    "author_system": frozenset(),
    "author_brief": frozenset({"goal"}),
    "critic": frozenset({"artifact", "constraints"}),
    "critic_system": frozenset(),
    "fixer": frozenset({"filename", "bill_of_work"}),
    "fixer_system": frozenset(),
    "judge": frozenset({"artifact", "critiques"}),
    "judge_system": frozenset(),
    "severities": frozenset(),
    "verifier": frozenset({"passage", "claim"}),
    "verifier_system": frozenset(),
}
"""Every template, with the variables it cannot do without."""

_FOLDER = Path(__file__).with_name("templates")
_SUFFIX = ".md"
_SYSTEM = "_system"


@cache
def built_in(name: str) -> str:
    """Returns the text of a template that comes with signoff."""
    return (_FOLDER / f"{name}{_SUFFIX}").read_text("utf-8")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Returns a template with its values filled in; it ends with one line break."""
    # A block at the end of a template may be left out, and its empty line with it.
    return render_text(template, values).strip("\n") + "\n"


def variables_for(name: str) -> set[str]:
    """Returns the variables that a template may use: those of the built-in ones of its role."""
    role = name.removesuffix(_SYSTEM)
    parts = [part for part in (role, f"{role}{_SYSTEM}") if part in REQUIRED]
    return set().union(*(variables_of(built_in(part)) for part in parts))
