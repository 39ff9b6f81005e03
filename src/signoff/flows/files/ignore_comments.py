"""Comments that ignore a rule which does not exist: the rule was misspelled, renamed or removed.

A comment about a rule of another set of constraints is no mistake: one project is reviewed
against several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from signoff.flows.constraint_file import read_constraints
from signoff.flows.flow import Flow
from signoff.flows.step import StepKind
from signoff.review.constraint import Constraint
from signoff.review.lasting_decision import ignored_rules

MOST_SHOWN = 20
"""Comments and rules that are listed; a file may have any number of them."""
_PRESETS = Path(__file__).parents[1] / "presets"


def unknown_ignores(flow: Flow, files: Mapping[str, str]) -> list[str]:
    """Returns a warning for each comment that names an unknown rule, with its file and line."""
    comments = ignored_rules(files)
    own = rule_names(flow.constraints)
    unknown = [each for each in comments if each[2] not in own]
    if not unknown:
        return []
    checked = _checked_by_programs(flow)
    every = own | rule_names(_other_constraints(flow.home))
    listed = sorted(own)[:MOST_SHOWN]
    rules = ", ".join([*listed, *(["..."] if len(own) > len(listed) else [])])
    return [
        f"{path}:{line}: ignores the unknown rule {name!r} (rules: {rules})"
        for path, line, name in unknown
        if name not in every and not _may_be_of_program(name, checked)
    ][:MOST_SHOWN]


def rule_names(constraints: Iterable[Constraint]) -> set[str]:
    """Returns every name that a comment may use: of constraints, of rules, and of both."""
    names: set[str] = set()
    for each in constraints:
        rules = {rule.id for rule in each.rules}
        names |= {each.id, *rules, *(f"{each.id}/{rule}" for rule in rules)}
    return names


def _checked_by_programs(flow: Flow) -> set[str]:
    """Returns the constraints that a program checks: it has rules of its own."""
    return {
        constraint.id
        for step in flow.of_kind(StepKind.CRITIQUE)
        for constraint in flow.selected(step)
        if any(flow.capabilities(a).deterministic for a in flow.reviewers(step, constraint))
    }


def _may_be_of_program(name: str, checked: set[str]) -> bool:
    constraint, slash, _rule = name.partition("/")
    return constraint in checked if slash else bool(checked)


def _other_constraints(home: Path | None) -> list[Constraint]:
    """Returns the constraints of the project and of the presets; invalid files are left out."""
    return read_constraints(list(_constraint_files(home)), [], [])


def _constraint_files(home: Path | None) -> Iterator[Path]:
    if home is not None:
        yield from (home / "constraints").glob("**/*.y*ml")
    yield from _PRESETS.glob("*/home/constraints/**/*.yaml")
