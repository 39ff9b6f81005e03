"""The progress of a run, as conditions and commands of contract workflows see it.

It is a view of the run's state, which the journal stores. The state has the steps' results
under their own names, and the engine's own entries under names that begin with `_`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from signoff.contracts.model import ParallelItemResult, PendingRetry, StepResult, WorkflowStep
from signoff.core.errors import AuthorError

# What steps returned, and which step a name belongs to.
#
# A step's result belongs to that step and is read as `results.<step>.<key>`. The keys of results
# can also be read by their own names (`checkpoint.notes`, `{{notes}}`), but only while a name has
# one owner: two steps that return the same key make the bare name ambiguous, and reading it is an
# error that names both. So a worker that adds another step's key to its result changes nothing that
# other steps or conditions see.
#
# Not every claim counts the same. A key that the author declared (by the schema of a prompt, or by
# returning it from a function or program) takes a name from a key that a worker just sent. Keys
# that a schema does not list have no bare name at all, and neither have parameters and the run's
# own data.

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


# Names that begin with an underscore are the engine's own. A key of a result that begins with one
# gets no name in the state, so no worker can forge these.
ITEMS, HINT, BACKUP = "_items", "_hint", "_backup"
MARKER = "_marker"
"""Names the work that was committed last, which must stay in the database during the run."""

_RESULTS_PREFIX = f"{RESULTS}."


class CompletedSteps(Sequence[StepResult]):
    """The results of steps in their order; `"plan" in steps` asks for a step by its name.

    Each is made when it is read: a run may have done thousands of steps, and every step gets this.
    """

    def __init__(self, stored: Sequence[Mapping[str, Any]] = ()) -> None:
        """`stored` are the results as the run's state has them."""
        self._stored = stored

    def __getitem__(self, index: Any) -> Any:
        """Returns the result of a step by its position, or those of several."""
        if isinstance(index, slice):
            return CompletedSteps(self._stored[index])
        return StepResult(**self._stored[index])

    def __len__(self) -> int:
        """Returns how many steps were done; a step counts each time."""
        return len(self._stored)

    def __contains__(self, step: object) -> bool:
        """Whether a step was done, at least once."""
        return step in self.names if isinstance(step, str) else step in tuple(self)

    def __eq__(self, other: object) -> bool:
        """Compares with any sequence of results."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Returns the hash of a tuple of the results."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """Shows the results."""
        return repr(tuple(self))

    @property
    def names(self) -> list[str]:
        """The steps in their order."""
        return [each["step"] for each in self._stored]

    @property
    def latest(self) -> dict[str, Any]:
        """The latest result of every step, by step."""
        return {each["step"]: each.get("result") for each in self._stored}


class GateDecision(dict[str, Any]):
    """What a human chose at a gate; a mapping whose values are attributes as well."""

    @property
    def gate(self) -> str:
        """The step with the gate."""
        return str(self["gate"])

    @property
    def option(self) -> str:
        """The label of the option."""
        return str(self["option"])

    @property
    def input(self) -> str:
        """What the human wrote; may be empty."""
        return str(self.get("input") or "")


@dataclass(frozen=True)
class Checkpoint:
    """What conditions and commands know about the run."""

    workflow_run_id: str
    workflow_type: str
    current_step: str
    completed_steps: CompletedSteps = field(default_factory=CompletedSteps)
    data: Mapping[str, Any] = field(default_factory=lambda: ResultNames({}, {}))
    """The values that steps returned, by name; one that several steps returned cannot be read."""
    pending_retry: PendingRetry | None = None
    """The attempt that is under way after a failed one, and why that failed."""
    parallel_results: Mapping[str, ParallelItemResult] = field(default_factory=dict)
    """The items of the current step if it has any, else of the last step that had."""
    gate_decision: GateDecision | None = None
    own_results: Mapping[str, Any] = field(default_factory=dict)
    """What the step has just returned, by its name, for the conditions about that: it is no
    completed step yet, but its earlier result, if it has one, is no longer what counts."""

    def completed(self, step: str) -> bool:
        """Whether a step was done, at least once."""
        return step in self.completed_steps.names

    def result_of(self, step: str) -> Any:
        """Returns the latest result of a step, or None."""
        return self.results.get(step)

    @property
    def iteration_counts(self) -> Mapping[str, int]:
        """How often each step was done."""
        return Counter(self.completed_steps.names)

    @property
    def results(self) -> dict[str, Any]:
        """The latest result of every step that was done, by step; in conditions, its own too."""
        return {**self.completed_steps.latest, **self.own_results}

    def to_json(self) -> dict[str, Any]:
        """Returns it as expressions and programs see it: its data and its own fields.

        Programs get it on their standard input, which is recorded and compared on a replay.
        """
        # The run's own data comes last: a key that a step returned must not hide it.
        return {
            **self.data,
            "run_id": self.workflow_run_id,
            "type": self.workflow_type,
            "step": self.current_step,
            "completed": self.completed_steps.names,
            "results": self.results,
            "iterations": dict(self.iteration_counts),
            "gate": dict(self.gate_decision) if self.gate_decision else None,
        }


def expression_view(point: Checkpoint, names: Collection[str]) -> dict[str, Any]:
    """Returns a checkpoint as an expression sees it that reads these names below `checkpoint`.

    Raises `AmbiguousName` for a name that several steps returned: `has(...)` would be a guess.
    """
    # Reading an ambiguous name raises. In the plain copy below, it would only be missing.
    for name in names:
        point.data.get(name)
    values = point.to_json()
    values.setdefault("pending_retry", point.pending_retry and asdict(point.pending_retry))
    if not {"parallel_results", OWN_NAMES["parallel_results"]}.isdisjoint(names):
        items = {name: asdict(each) for name, each in point.parallel_results.items()}
        values.setdefault("parallel_results", items)
    for name, camel in OWN_NAMES.items():
        if name in values:
            values.setdefault(camel, values[name])
    return values


def checkpoint_of(
    run: str,
    workflow: str,
    step: str,
    state: Mapping[str, Any],
    pending_retry: PendingRetry | None = None,
    items: Mapping[str, ParallelItemResult] | None = None,
) -> Checkpoint:
    """Returns the checkpoint of a run with this state; `items` are those of the current step."""
    # The engine calls it the step of the decision; definitions call it the gate.
    decision = dict(state.get("_gate") or {})
    if decision:
        decision["gate"] = decision.pop("step")
    return Checkpoint(
        workflow_run_id=run,
        workflow_type=workflow,
        current_step=step,
        completed_steps=CompletedSteps(state.get(COMPLETED, ())),
        data=result_names(state),
        pending_retry=pending_retry,
        parallel_results=items
        or {key: ParallelItemResult(**each) for key, each in (state.get(ITEMS) or {}).items()},
        gate_decision=GateDecision(decision) if decision else None,
    )


def lookup(data: Mapping[str, Any], dotted: str) -> Any:
    """Returns a value by its dotted name, or None if there is none."""
    value: Any = data
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def lookup_result(results: Mapping[str, Any], dotted: str) -> tuple[bool, Any]:
    """Returns whether the step in `results.<step>.<key>` is done, and the value, if there is one.

    The names of steps may have dots, so the longest one that fits is meant.
    """
    rest = dotted.removeprefix(_RESULTS_PREFIX)
    fitting = [step for step in results if rest == step or rest.startswith(f"{step}.")]
    if not fitting:
        return False, None
    step = max(fitting, key=len)
    keys = rest[len(step) + 1 :]
    return True, lookup(results[step], keys) if keys else results[step]


def is_result_name(dotted: str) -> bool:
    """Whether a dotted name has the form `results.<step>` or `results.<step>.<key>`."""
    return dotted.startswith(_RESULTS_PREFIX)


def named_value(point: Checkpoint, params: Mapping[str, Any], dotted: str) -> Any:
    """Returns a parameter or a value that a step returned; None if there is none."""
    if is_result_name(dotted):
        return lookup_result(point.results, dotted)[1]
    return lookup(params if dotted.partition(".")[0] in params else point.data, dotted)


def shown_value(state: Mapping[str, Any], dotted: str, *, fan_outs: Collection[str] = ()) -> Any:
    """Returns what a gate shows for a name; for one that several steps returned, all of them.

    A name that only items of the steps in `fan_outs` returned stands for the values of all items.
    """
    # A gate shows what there is. An error at this place would leave the human without a question,
    # so a name without a value is shown as missing.
    point = checkpoint_of("", "", "", state)
    if is_result_name(dotted):
        return lookup_result(point.results, dotted)[1]
    name = dotted.partition(".")[0]
    if isinstance(point.data, ResultNames) and name in point.data.shared:
        owners = point.data.shared[name]
        values = {step: lookup(point.result_of(step), dotted) for step in owners}
        return {step: value for step, value in values.items() if value is not None}
    if name in point.data:
        return lookup(point.data, dotted)
    of_items = {step: _of_items(point.result_of(step), dotted) for step in fan_outs}
    found = [values for values in of_items.values() if values]
    return found[0] if len(found) == 1 else {s: v for s, v in of_items.items() if v} or None


def _of_items(result: Any, dotted: str) -> dict[str, Any]:
    """Returns what the items of a step returned under a name, by item."""
    items = result["items"] if result else {}
    values = {item: lookup(each, dotted) for item, each in items.items()}
    return {item: value for item, value in values.items() if value is not None}
