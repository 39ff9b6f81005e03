"""What steps returned, and which step a name belongs to.

A step's result belongs to that step and is read as `results.<step>.<key>`. The keys of results can
also be read by their own names (`checkpoint.notes`, `{{notes}}`), but only while a name has one
owner: two steps that return the same key make the bare name ambiguous, and reading it is an error
that names both. So a worker that adds another step's key to its result changes nothing that other
steps or conditions see.

Not every claim counts the same. A key that the author declared (by the schema of a prompt, or by
returning it from a function or program) takes a name from a key that a worker just sent. Keys that
a schema does not list have no bare name at all, and neither have parameters and the run's own data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signoff.contracts.model import WorkflowStep
from signoff.errors import AuthorError

COMPLETED, OWNERS = "_completed", "_owners"

RESULTS = "results"
"""The name under which every step's result can be read."""

OWN_NAMES = {
    "run_id": "workflowRunId",
    "type": "workflowType",
    "step": "currentStep",
    "completed": "completedSteps",
    "iterations": "iterationCounts",
    "gate": "gateDecision",
    "pending_retry": "pendingRetry",
    "parallel_results": "parallelResults",
}
"""The names of the run's own data in expressions and prompts, and in camel case."""

RESERVED = frozenset({*OWN_NAMES, *OWN_NAMES.values(), RESULTS, "item", "params"})
"""Names that no key of a result can have."""


class AmbiguousName(AuthorError):  # noqa: N818  # named for what is wrong
    """Several steps returned the same key, so its bare name says nothing."""


@dataclass(frozen=True)
class Owners:
    """The steps that own the bare name of a key; it can be read if there is one."""

    steps: tuple[str, ...]
    declared: bool
    """Whether the author declared it, or a worker just sent it."""

    def joined_by(self, step: str, declared: bool) -> Owners:
        """Returns the owners after another step returned the key."""
        # What the author declared replaces the claims of workers, and a worker's claim never takes
        # away a name that was declared.
        if declared is not self.declared:
            return Owners((step,), declared) if declared else self
        return self if step in self.steps else Owners((*self.steps, step), declared)


class ResultNames(Mapping[str, Any]):
    """The values that steps returned, by their bare names; an ambiguous one cannot be read."""

    def __init__(self, values: Mapping[str, Any], shared: Mapping[str, Sequence[str]]) -> None:
        self._values = values
        self.shared = shared
        """Names with several owners, and these."""

    def __getitem__(self, name: str) -> Any:
        """Returns a value; raises `AmbiguousName` if several steps returned it."""
        if name in self.shared:
            raise AmbiguousName(self.problem(name))
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Yields the names that can be read."""
        return iter(self._values)

    def __len__(self) -> int:
        """Returns how many names can be read."""
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        """Whether a name can be read; raises like reading it, because "no" would be a guess."""
        if name in self.shared:
            raise AmbiguousName(self.problem(str(name)))
        return name in self._values

    def __repr__(self) -> str:
        """Shows what can be read."""
        return repr(dict(self._values))

    def problem(self, name: str) -> str:
        """Returns why an ambiguous name cannot be read, and what to write instead."""
        steps = self.shared[name]
        instead = " or ".join(f"{RESULTS}.{step}.{name}" for step in steps)
        return f"the steps {', '.join(steps)} all returned {name!r}; write {instead}"


def result_names(state: Mapping[str, Any]) -> ResultNames:
    """Returns the values in a run's state that can be read by their bare names."""
    shared = {
        key: owners["steps"]
        for key, owners in (state.get(OWNERS) or {}).items()
        if len(owners["steps"]) > 1
    }
    values = {
        key: value for key, value in state.items() if not key.startswith("_") and key not in shared
    }
    return ResultNames(values, shared)


def named_update(
    state: Mapping[str, Any],
    results: Mapping[str, Any],
    steps: Mapping[str, WorkflowStep],
    params: Collection[str],
) -> dict[str, Any]:
    """Returns the update that makes the keys of results readable by their own names."""
    before = _owners(state)
    owners = dict(before)
    update: dict[str, Any] = {}
    for name, result in results.items():
        for key, declared in _keys(steps[name], result):
            if key in RESERVED or key in params:
                continue
            known = owners.get(key)
            now = known.joined_by(name, declared) if known else Owners((name,), declared)
            owners[key] = now
            # The value of the one owner is stored. As soon as there are two, the name cannot be
            # read any more, so there is nothing to store.
            if now.steps == (name,) and now.declared is declared:
                update[key] = result[key]
    if owners != before:
        update[OWNERS] = {
            key: {"steps": list(each.steps), "declared": each.declared}
            for key, each in owners.items()
        }
    return update


def _keys(step: WorkflowStep, result: Any) -> Iterator[tuple[str, bool]]:
    """Yields the keys of a result that have a bare name, and whether the author declared them."""
    if not isinstance(result, Mapping):
        return
    names = [key for key in result if isinstance(key, str) and not key.startswith("_")]
    listed = (step.schema or {}).get("properties") if step.prompt else None
    if isinstance(listed, Mapping) and step.parallel_key is None:
        names = [key for key in names if key in listed]
    # What a worker sends to a prompt without a schema is its own choice. The items of a fan-out
    # are collected by the engine, so their keys are its own.
    declared = not step.prompt or isinstance(listed, Mapping) or step.parallel_key is not None
    yield from ((key, declared) for key in names)


def _owners(state: Mapping[str, Any]) -> dict[str, Owners]:
    stored = state.get(OWNERS) or {}
    return {key: Owners(tuple(each["steps"]), each["declared"]) for key, each in stored.items()}
