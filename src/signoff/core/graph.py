"""Draws a workflow's graph: as a Mermaid flowchart, as plain text, and as data.

Titles and prompts are untrusted, so no part of them may act as notation: ids in the diagram are
our own, labels are escaped, and control characters never reach a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from signoff.core.args import BoundedInt, describe_param, param_to_json
from signoff.core.edges import ResolvedEdge, gate_name
from signoff.core.outcome import End, Outcome
from signoff.core.step import ITERATION, HandlerObject, StepDef

if TYPE_CHECKING:
    from signoff.core.workflow import Workflow

LONGEST = 120
"""Characters of a title or prompt that appear in a drawing."""

_RISKY = re.compile(
    # A set of nearly all characters would take Python milliseconds to compile.
    r"(?<!\w)[-._/]|[-._/](?!\w)|(?=[\x00-\x7f])[^\w \-._/,!?']|(?i:d(?=irection))"
)
"""What Mermaid could take for notation, markup or a list, even within quotes: nearly all
punctuation, and the word `direction`, which it looks for anywhere in a line."""


def mermaid(workflow: Workflow) -> str:
    """Returns the graph as a Mermaid flowchart; loops are dotted, gates are diamonds."""
    return "\n".join(["flowchart TD", *(f"    {line}" for line in _flowchart(workflow)), ""])


def text(workflow: Workflow) -> str:
    """Returns the graph as lines that read well in any terminal."""
    count = len(workflow.steps)
    lines = [f"{_plain(workflow.name)}: {count} step{'' if count == 1 else 's'}"]
    if workflow.description:
        lines.append(_plain(workflow.description))
    if workflow.max_iterations is not None:
        lines.append(f"at most {workflow.max_iterations} rounds")
    for name, param in workflow.declared_params.items():
        lines.append(f"parameter {_plain(name)}: {_plain(describe_param(param))}")
    phase = ""
    for step in workflow.steps.values():
        if step.phase != phase:
            phase = step.phase
            lines += ["", f"-- {_plain(phase) or 'no phase'} --"]
        mark = ">" if step.id == workflow.entry_point else " "
        lines += ["", f"{mark} {_plain(step.id)}  {_plain(step.title)}".rstrip()]
        facts = [*_nature(step), *_edges(workflow, step)]
        width = max((len(name) for name, _ in facts), default=0)
        lines += [f"    {name:<{width}}  {value}" for name, value in facts]
    return "\n".join([*lines, ""])


def data(workflow: Workflow) -> dict[str, Any]:
    """Returns the graph as plain values, for programs that draw their own pictures."""
    return {
        "workflow": workflow.name,
        "description": workflow.description,
        "entry_point": workflow.entry_point,
        "max_iterations": workflow.max_iterations,
        "digest": workflow.digest,
        "parameters": [
            {**param_to_json(param), "description": param.arg.description}
            for param in workflow.declared_params.values()
        ],
        "steps": [
            {"id": s.id, "title": s.title, "phase": s.phase, "gate": s.gate is not None}
            for s in workflow.steps.values()
        ],
        "edges": [
            {
                "from": edge.step,
                "on": edge.name,
                "to": None if _end(edge) else edge.to,
                "end": _end(edge) or None,
                "loops": edge.back,
                "bound": edge.bound,
                "starts_round": edge.definition.starts_iteration,
            }
            for edge in workflow.edges
        ],
    }


def _flowchart(workflow: Workflow) -> Iterator[str]:
    # Ids of our own: a step called `end` would break the notation.
    ids = {step: f"s{number}" for number, step in enumerate(workflow.steps)}
    yield from _phases(workflow, ids)
    for end in dict.fromkeys(_end(edge) for edge in workflow.edges if _end(edge)):
        yield f'stop_{end}(["{end}"])'
    yield 'begin(("begin"))'
    yield f"begin --> {ids[workflow.entry_point]}"
    for step in workflow.steps.values():
        yield from _arrows(workflow, step, ids)


def _phases(workflow: Workflow, ids: Mapping[str, str]) -> Iterator[str]:
    # Grouped by the label that is shown: two phases whose names differ only in what cannot be drawn
    # would otherwise be two groups of the same name.
    phases = dict.fromkeys(_label(step.phase) for step in workflow.steps.values())
    for number, phase in enumerate(phases):
        inside = [step for step in workflow.steps.values() if _label(step.phase) == phase]
        if phase:
            yield f'subgraph p{number}["{phase}"]'
        for step in inside:
            yield from _nodes(step, ids[step.id])
        if phase:
            yield "end"


def _arrows(workflow: Workflow, step: StepDef, ids: Mapping[str, str]) -> Iterator[str]:
    if step.gate is not None:
        yield f'{ids[step.id]} -->|"{Outcome.OK.value}"| {ids[step.id]}g'
    for edge in workflow.edges.from_step(step.id):
        arrow = "-.->" if edge.back else "-->"
        start = f"{ids[edge.step]}g" if _option(edge) else ids[edge.step]
        goal = f"stop_{_end(edge)}" if _end(edge) else ids[str(edge.to)]
        label = ", ".join([_label(_option(edge) or _name(edge)), *_terms(workflow, edge)])
        yield f'{start} {arrow}|"{label}"| {goal}'


def _nodes(step: StepDef, node: str) -> Iterator[str]:
    lines = [label for label in (_label(step.id), _label(step.title)) if label]
    shape = ('("', '")') if step.handler is None else ('["', '"]')
    if step.agent:
        lines.append(f"by {_label(step.agent)}")
    if isinstance(step.handler, HandlerObject):
        shape = ('[["', '"]]')
    yield f"{node}{shape[0]}{'<br/>'.join(lines)}{shape[1]}"
    if step.gate is not None:
        yield f'{node}g{{"{_label(step.gate.prompt) or "gate"}"}}'


def _nature(step: StepDef) -> Iterator[tuple[str, str]]:
    """Yields what has to happen before a step is left."""
    if step.agent:
        yield "by", _plain(step.agent)
    for condition in step.preconditions:
        yield "needs", _plain(condition.name)
    for condition in step.postconditions:
        yield "ensures", _plain(condition.name)
    if step.postconditions or step.retries != StepDef.retries:
        times = "once" if step.retries == 1 else f"{step.retries} times"
        again = f"{times} with feedback, then" if step.retries else "never,"
        yield "retries", f"{again} a human decides"
    if step.timeout is not None:
        yield "timeout", f"{step.timeout:g} seconds"
    limits = ", ".join(f"{value:g} {name}" for name, value in step.limits.to_json().items())
    if limits:
        yield "limits", limits


def _edges(workflow: Workflow, step: StepDef) -> Iterator[tuple[str, str]]:
    """Yields where a step leads; the options of its gate come last, under their question."""
    edges = workflow.edges.from_step(step.id)
    yield from ((_name(edge), _goal(workflow, edge)) for edge in edges if not _option(edge))
    if step.gate is None:
        return
    yield Outcome.OK.value, f'-> a human decides: "{_plain(step.gate.prompt)}"'
    explained = {option.label for option in step.gate.options if option.requires_input}
    for edge in edges:
        if label := _option(edge):
            yield f"  {_plain(label)}", _goal(workflow, edge, explained=label in explained)


def _goal(workflow: Workflow, edge: ResolvedEdge, *, explained: bool = False) -> str:
    goal = f"[{_end(edge)}]" if _end(edge) else _plain(str(edge.to))
    terms = [
        *(["loop"] if edge.back else []),
        *_terms(workflow, edge),
        *(["with a reason"] if explained else []),
    ]
    return f"-> {goal}  ({', '.join(terms)})" if terms else f"-> {goal}"


def _terms(workflow: Workflow, edge: ResolvedEdge) -> Iterator[str]:
    """Yields the conditions under which an edge can be taken."""
    if (rounds := _rounds(workflow, edge)) is not None:
        yield f"at most {rounds} rounds"
    elif edge.bound is not None:
        yield "once at most" if edge.bound == 1 else f"at most {edge.bound} times"
        if edge.definition.on_limit == "ask":
            yield "then a human decides"
    if edge.definition.starts_iteration:
        yield "next round"


def _rounds(workflow: Workflow, edge: ResolvedEdge) -> int | None:
    """Returns the last round of a step that repeats itself, if its handler takes the round.

    That ends the loop long before the bound that every edge has.
    """
    if edge.name != Outcome.ITERATE.value or edge.definition.bound is not None:
        return None
    param = workflow.params[edge.step].get(ITERATION)
    domain = param.domain() if param is not None else None
    return domain.hi if isinstance(domain, BoundedInt) else None


def _end(edge: ResolvedEdge) -> str:
    if edge.to is None:
        return End.COMPLETED.value
    return edge.to.value if isinstance(edge.to, End) else ""


def _name(edge: ResolvedEdge) -> str:
    return "otherwise" if edge.name == Outcome.DEFAULT.value else edge.name


def _option(edge: ResolvedEdge) -> str:
    """Returns the label of a gate's option; empty for an edge of another kind."""
    return edge.name.partition(gate_name(""))[2]


def _plain(words: str) -> str:
    """Returns a text on one line, without control characters."""
    line = "".join(c if c.isprintable() else " " for c in words)
    line = " ".join(line.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _label(words: str) -> str:
    return _RISKY.sub(lambda found: f"#{ord(found[0])};", _plain(words))
