"""A workflow's graph for the eye: as Mermaid, as plain text, and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from signoff.core.edges import Way
from signoff.core.outcome import End

if TYPE_CHECKING:
    from signoff.core.workflow import Workflow

_ESCAPES = str.maketrans({'"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\n": " "})


def mermaid(workflow: Workflow) -> str:
    """Returns the graph in Mermaid; loops are dotted, and their bounds stand on them."""
    # Ids of our own: a step called `end` would break the notation.
    ids = {step: f"s{number}" for number, step in enumerate(workflow.steps)}
    lines = ["flowchart TD"]
    for step in workflow.steps.values():
        label = _escaped(f"{step.id}: {step.title}" if step.title else step.id)
        shape = ('{{"', '"}}') if step.gate is not None else ('["', '"]')
        lines.append(f"    {ids[step.id]}{shape[0]}{label}{shape[1]}")
    ends = dict.fromkeys(_end(way) for way in workflow.edges if _end(way))
    lines.extend(f'    {end}(["{end}"])' for end in ends)
    lines.append(f"    begin(( )) --> {ids[workflow.entry_point]}")
    for way in workflow.edges:
        arrow = ("-.", ".->") if way.back else ("--", "-->")
        target = _end(way) or ids[str(way.to)]
        label = _escaped(_label(way))
        lines.append(f'    {ids[way.step]} {arrow[0]} "{label}" {arrow[1]} {target}')
    return "\n".join(lines) + "\n"


def text(workflow: Workflow) -> str:
    """Returns the graph as lines that read well in a terminal."""
    count = len(workflow.steps)
    heading = f"{workflow.name}: {count} step{'s' if count != 1 else ''}"
    lines = [heading + (f", {workflow.description}" if workflow.description else "")]
    if workflow.max_iterations is not None:
        lines.append(f"at most {workflow.max_iterations} iterations")
    for step in workflow.steps.values():
        mark = "▶" if step.id == workflow.entry_point else "•"
        title = f"  {step.title}" if step.title else ""
        lines += ["", f"{mark} {step.id}{title}"]
        ways = workflow.edges.of(step.id)
        width = max((len(way.name) for way in ways), default=0)
        for way in ways:
            arrow = "↺" if way.back else "→"
            bound = f"  (at most {way.bound} times)" if way.bound is not None else ""
            lines.append(f"    {way.name:<{width}}  {arrow} {_goal(way)}{bound}")
    return "\n".join(lines) + "\n"


def data(workflow: Workflow) -> dict[str, Any]:
    """Returns the graph as plain values."""
    return {
        "workflow": workflow.name,
        "description": workflow.description,
        "entry_point": workflow.entry_point,
        "max_iterations": workflow.max_iterations,
        "digest": workflow.digest,
        "steps": [
            {"id": s.id, "title": s.title, "phase": s.phase, "gate": s.gate is not None}
            for s in workflow.steps.values()
        ],
        "edges": [
            {
                "from": way.step,
                "on": way.name,
                "to": None if _end(way) else str(way.to),
                "end": _end(way) or None,
                "loops": way.back,
                "bound": way.bound,
                "starts_iteration": way.edge.starts_iteration,
            }
            for way in workflow.edges
        ],
    }


def _end(way: Way) -> str:
    if way.to is None:
        return End.COMPLETED.value
    return way.to.value if isinstance(way.to, End) else ""


def _goal(way: Way) -> str:
    return f"[{_end(way)}]" if _end(way) else str(way.to)


def _label(way: Way) -> str:
    return f"{way.name} ≤{way.bound}" if way.bound is not None else way.name


def _escaped(label: str) -> str:
    return label.replace("#", "#35;").translate(_ESCAPES)
