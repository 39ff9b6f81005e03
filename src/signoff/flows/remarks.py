"""What is odd about a flow and no mistake: patterns that match nothing, work nobody looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from signoff.documents.mistakes import Mistake, format_path
from signoff.flows.model import GenflowConfig
from signoff.flows.selection import selects
from signoff.flows.step import StepKind, WorkflowStep
from signoff.review.constraint import Constraint

_FILES = (".yaml", ".yml", ".md", ".txt")


def flow_remarks(config: GenflowConfig, constraints: Sequence[Constraint]) -> list[Mistake]:
    """Returns what whoever wrote the flow may want to know, by its place in the file."""
    found = [*_judging(config), *_unjudged(config), *_endless(config), *_goal(config)]
    if not constraints:
        return [*found, Mistake(("constraints",), "there are no constraints: critics look at none")]
    return [*found, *_patterns(config, constraints), *_unread(config, constraints)]


def _patterns(config: GenflowConfig, constraints: Sequence[Constraint]) -> Iterator[Mistake]:
    for path, pattern in _all_patterns(config):
        if not any(fnmatchcase(constraint.id, pattern) for constraint in constraints):
            yield Mistake(path, f"{format_path(path)}: {pattern!r} matches no constraint")
    for position, route in enumerate(config.constraints.routing.priority_routing):
        if not any(route.low <= each.priority <= route.high for each in constraints):
            path = ("constraints", "routing", "priority_routing", position)
            what = f"no constraint has a priority from {route.low} to {route.high}"
            yield Mistake(path, f"{format_path(path)}: {what}")


def _all_patterns(config: GenflowConfig) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for position, step in enumerate(config.workflow):
        for place, pattern in enumerate(step.constraints or ()):
            yield ("workflow", position, "constraints", place), pattern
    for position, rule in enumerate(config.constraints.routing.rules):
        yield ("constraints", "routing", "rules", position, "match"), rule.match
    for pattern in config.constraint_behaviors:
        yield ("constraint_behaviors", pattern), pattern


def _unread(config: GenflowConfig, constraints: Sequence[Constraint]) -> Iterator[Mistake]:
    critics = [step for step in config.workflow if step.step is StepKind.CRITIQUE]
    for constraint in constraints:
        if not any(selects(step, constraint) for step in critics):
            what = f"no critique step reads the artifact against {constraint.id!r}"
            yield Mistake(("workflow",), what)


def _judging(config: GenflowConfig) -> Iterator[Mistake]:
    kinds = {step.id: step.step for step in config.workflow}
    if StepKind.ADJUDICATE not in kinds.values():
        what = "no adjudicate step: nothing approves, a run ends at its iteration limit"
        yield Mistake(("workflow",), what)
    read = False
    for position, step in enumerate(config.workflow):
        read = read or step.step is StepKind.CRITIQUE
        if step.step is StepKind.ADJUDICATE and not read:
            yield Mistake(("workflow", position), f"{step.id!r} judges before any critique step")
        if kinds.get(step.loop_to or "") in (StepKind.ADJUDICATE, StepKind.REFINE):
            what = f"after the loop to {step.loop_to!r} there are no critiques to go by"
            yield Mistake(("workflow", position, "loop_to"), what)


def _unjudged(config: GenflowConfig) -> Iterator[Mistake]:
    """An approval says nothing about findings that no judge is shown."""
    if not _judges(config):
        return
    for position, step in enumerate(config.workflow):
        if step.step is StepKind.CRITIQUE and not _is_judged(config.workflow[position + 1 :]):
            what = f"no judge is shown what {step.id!r} finds, so it keeps nothing from approval"
            yield Mistake(("workflow", position), what, "a judge after it, not of scope: previous")


def _is_judged(later: Sequence[WorkflowStep]) -> bool:
    """Tells whether one of the steps after a critique step is a judge that sees its critiques."""
    last = True
    for step in later:
        if step.step is StepKind.ADJUDICATE and (last or step.scope != "previous"):
            return True
        last = last and step.step is not StepKind.CRITIQUE
    return False


def _endless(config: GenflowConfig) -> Iterator[Mistake]:
    judges = _judges(config)
    ends = any(step.on_approved == "finish" for step in judges)
    if judges and judges[-1].on_approved == "continue" and not ends:
        what = "no approval ends a run: it ends at its iteration limit"
        yield Mistake(("workflow", config.workflow.index(judges[-1]), "on_approved"), what)


def _judges(config: GenflowConfig) -> list[WorkflowStep]:
    return [step for step in config.workflow if step.step is StepKind.ADJUDICATE]


def _goal(config: GenflowConfig) -> Iterator[Mistake]:
    text = config.goal.text.strip() if config.goal else ""
    if text.endswith(_FILES) and len(text.split()) == 1:
        what = f"goal is the text {text!r}, not the file of that name"
        yield Mistake(("goal",), what, "name a goal file")
