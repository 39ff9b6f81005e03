"""Warnings about a flow: what is odd but not a mistake, so a run starts anyway.

Patterns that match nothing, reviews that no judge sees, sources that cannot be read. Prompts
mention missing sources as well, but the user who starts a run reads the terminal.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from shutil import which

from signoff.documents.mistakes import Mistake, format_path
from signoff.flows.flow import Flow
from signoff.flows.model import GenflowConfig
from signoff.flows.step import StepKind, WorkflowStep
from signoff.review.constraint import Constraint, SourceBlock

_FILES = (".yaml", ".yml", ".md", ".txt")
VARIABLE = "{{"
"""Paths that contain it may lead into the run's own folder, which does not exist yet."""


def flow_warnings(config: GenflowConfig, constraints: Sequence[Constraint]) -> list[Mistake]:
    """Returns what the author of a flow may want to know, by its path in the file."""
    found = [*_judging(config), *_unjudged(config), *_endless(config), *_goal(config)]
    if not constraints:
        return [
            *found,
            Mistake(("constraints",), "there are no constraints, so critics review nothing"),
        ]
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
        for index, pattern in enumerate(step.constraints or ()):
            yield ("workflow", position, "constraints", index), pattern
    for position, rule in enumerate(config.constraints.routing.rules):
        yield ("constraints", "routing", "rules", position, "match"), rule.match
    for pattern in config.constraint_behaviors:
        yield ("constraint_behaviors", pattern), pattern


def _unread(config: GenflowConfig, constraints: Sequence[Constraint]) -> Iterator[Mistake]:
    critics = [step for step in config.workflow if step.step is StepKind.CRITIQUE]
    for constraint in constraints:
        if not any(step.selects(constraint) for step in critics):
            what = f"no critique step reviews the artifact against {constraint.id!r}"
            yield Mistake(("workflow",), what)


def _judging(config: GenflowConfig) -> Iterator[Mistake]:
    kinds = {step.id: step.step for step in config.workflow}
    if not _judges(config):
        what = "no adjudicate step: nothing passes, a run ends at its round limit"
        yield Mistake(("workflow",), what)
    order = list(kinds.values())
    for position, step in enumerate(config.workflow):
        if step.step is StepKind.ADJUDICATE and StepKind.CRITIQUE not in order[:position]:
            yield Mistake(("workflow", position), f"{step.id!r} judges before any critique step")
        if kinds.get(step.loop_to or "") in (StepKind.ADJUDICATE, StepKind.REFINE):
            what = f"after the loop to {step.loop_to!r} there are no critiques to judge"
            yield Mistake(("workflow", position, "loop_to"), what)


def _unjudged(config: GenflowConfig) -> Iterator[Mistake]:
    """A text can pass with findings that no judge sees."""
    if not _judges(config):
        return
    for position, step in enumerate(config.workflow):
        if step.step is StepKind.CRITIQUE and not _is_judged(config.workflow[position + 1 :]):
            what = f"no judge sees the findings of {step.id!r}; those that block stay open"
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
        what = "no verdict ends a run: it ends at its round limit"
        yield Mistake(("workflow", config.workflow.index(judges[-1]), "on_approved"), what)


def _judges(config: GenflowConfig) -> list[WorkflowStep]:
    return [step for step in config.workflow if step.step is StepKind.ADJUDICATE]


def _goal(config: GenflowConfig) -> Iterator[Mistake]:
    text = config.goal.text.strip() if config.goal else ""
    if text.endswith(_FILES) and len(text.split()) == 1:
        what = f"goal is the text {text!r}, not the file of that name"
        yield Mistake(("goal",), what, "name a goal file")


def source_warnings(flow: Flow) -> Iterator[str]:
    """Yields which files of globs cannot be read and which scripts will not run."""
    blocks = {name: block for name, block in flow.sources.items() if block != SourceBlock()}
    if blocks:
        yield from _unreadable(flow, blocks)
    scripts = [script for block in blocks.values() for script in block.scripts]
    scripts += [each.script for each in flow.constraints if each.script.strip()]
    if scripts and not flow.allow_scripts:
        names = ", ".join(scripts)
        yield f"scripts run only if the run allows them (allow_scripts); these will not: {names}"


def _unreadable(flow: Flow, blocks: Mapping[str, SourceBlock]) -> Iterator[str]:
    # Most flows have no sources and should not wait for what reads them.
    from signoff.review.sources import read_source

    allowed = [flow.home] if flow.home else []
    for name, block in blocks.items():
        globs = tuple(path for path in block.globs if VARIABLE not in path)
        checked = SourceBlock(globs=globs, inline=block.inline)
        read = read_source(checked, root=flow.root, allowed=allowed, variables={})
        for message in (*read.errors, *read.warnings):
            yield f"{_heading(name)}: {message}"


def source_problems(flow: Flow) -> Iterator[str]:
    """Yields which files, variables and programs that sources and scripts name are missing.

    A run without them would be paid for and be about something else.
    """
    for name, block in flow.sources.items():
        if block != SourceBlock():
            # Most flows have no sources and should not wait for what reads them.
            from signoff.flows.steps.material import missing_material

            yield from (f"{_heading(name)}: {each}" for each in missing_material(flow, block))
    for constraint in flow.constraints if flow.allow_scripts else ():
        program = next(iter(shlex.split(constraint.script)), VARIABLE)
        # A relative path starts at the project's folder, where a run starts it.
        if VARIABLE not in program and not any(map(which, (program, str(flow.root / program)))):
            yield f"script of {constraint.id}: there is no program {program!r}"


def _heading(name: str) -> str:
    return f"sources of {name or 'the goal'}"
