"""The constraints that one critic reviews in one call, and whose rule each issue of it is about.

With one constraint, every issue is about it, whatever rule it names. With several, an issue names
its rule together with the constraint, and the critique is split into one for each constraint. So
everything after it works as if each constraint had been reviewed by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from signoff.core.severity import DEFAULT_BLOCK_ON, DEFAULT_SEVERITY, Severity
from signoff.review.constraint import Constraint
from signoff.review.critique import Critique, CritiqueIssue, Overall

SEPARATOR = "/"
"""Between a constraint and its rule, as in `tone/no-shouting`."""


@dataclass(frozen=True)
class ReviewScope:
    """One or several constraints, the most important ones first."""

    constraints: tuple[Constraint, ...]

    @property
    def first(self) -> Constraint:
        """The constraint of everything that cannot be assigned to one."""
        return self.constraints[0]

    @property
    def several(self) -> bool:
        """Whether rules have to be named with their constraint."""
        return len(self.constraints) > 1

    @property
    def names(self) -> str:
        """The constraints in a sentence."""
        ids = [repr(each.id) for each in self.constraints]
        return " and ".join(filter(None, (", ".join(ids[:-1]), ids[-1])))

    @cached_property
    def rules(self) -> Mapping[str, Severity]:
        """The severity of each rule, by the name under which the prompt lists it."""
        return {name: severity for each in self.constraints for name, severity in self._of(each)}

    def owner(self, issue: CritiqueIssue) -> str:
        """Returns the id of the constraint that an issue is about; the first one in doubt."""
        return self._assignment(issue)[0]

    def unknown_rules(self, critique: Critique) -> list[str]:
        """Returns messages to the critic about issues that name no rule of these constraints."""
        wrong = [issue for issue in critique.issues if not self.is_known(issue)]
        if not wrong:
            return []
        named = [f"{issue.id} names the rule {issue.rule_id[:80]!r}" for issue in wrong]
        return [*named, f"`rule_id` must be one of: {', '.join(self.rules)}"]

    def is_known(self, issue: CritiqueIssue) -> bool:
        """Whether an issue names a rule of these constraints; a single one owns every issue."""
        return not self.several or issue.rule_id in self._assignments

    @cached_property
    def severities(self) -> Mapping[str, Severity]:
        """The severity of each rule, by every name that a critic may use for it."""
        rules = [(each.id, rule) for each in self.constraints for rule in each.rules]
        full = {f"{name}{SEPARATOR}{rule.id}": rule.default_severity for name, rule in rules}
        return {**full, **self.rules}

    def split(
        self, critique: Critique, block_on: Sequence[Severity] = DEFAULT_BLOCK_ON
    ) -> list[Critique]:
        """Returns one critique for each constraint; one without issues passes.

        If some issues block, a critique that has none of them passes as well. What the critic and
        the engine say about the whole goes with the first one. An issue that names no rule of these
        constraints counts as well: it must not get lost.
        """
        if not self.several:
            return [replace(critique, issues=self._issues(critique, self.first))]
        lost = [issue.id for issue in critique.issues if not self.is_known(issue)]
        note = f"counted for {self.first.id!r}, as no known rule is named: {', '.join(lost)}"
        notes = (*critique.notes, note) if lost else critique.notes
        blocking = [issue for issue in critique.issues if issue.severity in block_on]
        cause = blocking or critique.issues
        parts = [self._part(critique, each, cause) for each in self.constraints]
        with_whole = replace(
            parts[0],
            approved_sections=critique.approved_sections,
            summary=critique.summary,
            notes=notes,
        )
        return [with_whole, *parts[1:]]

    def _issues(self, critique: Critique, constraint: Constraint) -> tuple[CritiqueIssue, ...]:
        rules = ((issue, *self._assignment(issue)) for issue in critique.issues)
        return tuple(
            issue if issue.rule_id == rule else replace(issue, rule_id=rule)
            for issue, owner, rule in rules
            if owner == constraint.id
        )

    def _part(
        self, critique: Critique, constraint: Constraint, cause: Sequence[CritiqueIssue]
    ) -> Critique:
        """Returns the critique of a constraint; it fails if an issue of it is the cause."""
        issues = self._issues(critique, constraint)
        # An error is not a verdict, so it is the same for all of them.
        failed = any(self.owner(issue) == constraint.id for issue in cause)
        passed = not failed and critique.overall is not Overall.ERROR
        return Critique(
            constraint_id=constraint.id,
            reviewer=critique.reviewer,
            round=critique.round,
            overall=Overall.PASS if passed else critique.overall,
            issues=issues,
            decided_by=critique.decided_by,
            answered_by=critique.answered_by,
        )

    def _assignment(self, issue: CritiqueIssue) -> tuple[str, str]:
        """Returns the constraint of an issue and its rule, without the constraint's name."""
        return self._assignments.get(issue.rule_id, (self.first.id, issue.rule_id))

    @cached_property
    def _assignments(self) -> Mapping[str, tuple[str, str]]:
        """The constraint and the rule by each name that can only mean this one."""
        short: dict[str, set[tuple[str, str]]] = {}
        for each in self.constraints:
            for name in (each.id, *(rule.id for rule in each.rules)):
                short.setdefault(name, set()).add((each.id, name))
        clear = {name: next(iter(found)) for name, found in short.items() if len(found) == 1}
        # No id of a constraint contains the separator, so a full name means one rule only.
        full = {
            f"{each.id}{SEPARATOR}{rule.id}": (each.id, rule.id)
            for each in self.constraints
            for rule in each.rules
        }
        return {**clear, **full}

    def _of(self, constraint: Constraint) -> Iterator[tuple[str, Severity]]:
        prefix = f"{constraint.id}{SEPARATOR}" if self.several else ""
        for rule in constraint.rules:
            yield f"{prefix}{rule.id}", rule.default_severity
        if self.several and not constraint.rules:
            yield constraint.id, DEFAULT_SEVERITY
