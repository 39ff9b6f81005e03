"""The progress of a run, as conditions and commands see it, and whoever resumes the run.

It is a view of the run's state, which the journal stores. The state has the steps' results
under their own names, and the engine's own entries under names that begin with `_`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from signoff.contracts.model import (
    MAX_RETRIES,
    ParallelItemResult,
    PendingRetry,
    StepResult,
    WorkflowStep,
)
from signoff.core.errors import AuthorError
from signoff.core.run_state import EffectRecord, RunState, Stage

if TYPE_CHECKING:
    from signoff.notation import RunSnapshot


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


# How far a run and the items of its step are, for the program or the human that resumes it.


SHOWN = 5
"""How many failed items a human is shown."""

_AT_WORK = (Stage.ENTER, Stage.WORK, Stage.CHECK)
"""The stages of an attempt; after them a human is asked, or the step is done."""


@dataclass(frozen=True)
class ResumeContext:
    """The position of a run, its last output, and what failed."""

    workflow_type: str
    run_id: str
    current_step: str
    completed_steps: tuple[str, ...]
    last_step_output: Any = None
    pending_retry: PendingRetry | None = None
    """The attempt that the run continues with, if the one before it failed."""
    parallel_status: Mapping[str, Any] | None = None
    """The number of items, the number of completed ones, and the names of the failed ones."""
    parallel_results: Mapping[str, ParallelItemResult] | None = None
    """The items one by one, each with its error."""

    @property
    def is_retry(self) -> bool:
        """Whether it continues with another attempt at a step whose last attempt failed."""
        return self.pending_retry is not None

    @property
    def lines(self) -> list[str]:
        """What a human should know before the run continues."""
        lines: list[str] = []
        if retry := self.pending_retry:
            what = f"step {retry.step!r} continues with attempt {retry.attempt}"
            lines.append(f"{what}; the last one failed: {retry.error}")
        status = self.parallel_status
        if status and status["completed"] < status["total"]:
            lines.append(f"items: {status['completed']} of {status['total']} completed")
        failed = {n: e for n, e in (self.parallel_results or {}).items() if e.error}
        lines += [
            f"item {name} ({each.status}, failed attempts: {each.retry_count}): {each.error}"
            for name, each in list(failed.items())[:SHOWN]
        ]
        if len(failed) > SHOWN:
            lines.append(f"and {len(failed) - SHOWN} more with errors")
        return lines

    @property
    def facts(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)


def resume_context(run: RunSnapshot) -> ResumeContext:
    """Returns the summary of a run."""
    point = current_checkpoint(run)
    done, items = point.completed_steps, point.parallel_results
    failed = [name for name, each in items.items() if each.status == "failed"]
    completed = sum(each.status == "completed" for each in items.values())
    status = {"total": len(items), "completed": completed, "failed": failed}
    return ResumeContext(
        workflow_type=point.workflow_type,
        run_id=point.workflow_run_id,
        current_step=point.current_step,
        completed_steps=tuple(each.step for each in done),
        last_step_output=done[-1].result if done else None,
        pending_retry=point.pending_retry,
        parallel_status=status if items else None,
        parallel_results=items or None,
    )


def current_checkpoint(run: RunSnapshot) -> Checkpoint:
    """Returns the checkpoint of a run with the state of the step that is under way."""
    state, step = run.state, run.state.step or ""
    attempt = state.attempt - state.replaced
    retry = None
    if attempt > 1 and state.stage in _AT_WORK and state.pending is None:
        retry = PendingRetry(step, state.feedback or "", attempt)
    point = checkpoint_of(run.name, state.workflow, step, state.state_with_pending, retry)
    items = _items(run, point)
    return replace(point, parallel_results=items) if items else point


def _items(run: RunSnapshot, point: Checkpoint) -> dict[str, ParallelItemResult]:
    """Returns the items of the current step; empty if it has none."""
    if run.state.pending is not None or not has_items(run.state):
        # Before its items begin, those of an earlier visit are the last ones.
        return {}
    # Steps that run together are items of one fan-out, each under its own name.
    names = point.current_step.split("+")
    if len(names) > 1:
        return item_states(names, run.state)
    steps = run.description.get("source", {}).get("contract", {}).get("steps", ())
    keys = [each["items"] for each in steps if each["name"] == point.current_step]
    found = named_value(point, run.state.params, keys[0]) if keys and keys[0] else None
    return item_states(list(item_names(found)), run.state) if isinstance(found, list) else {}


# The items of a step: their names, and how far each of them is while the step is under way.


ITEM_KEY = "items"
"""The key of the fan-out of a step."""

RETRIES = "retries"
"""How often an item was retried, next to its result; missing if it was not."""


def item_names(items: Sequence[Any]) -> dict[str, Any]:
    """Returns items by name."""
    return {_name(item, index): item for index, item in enumerate(items)}


def _name(item: Any, index: int) -> str:
    """Returns the name of an item: its position, and its own id, name or text if it has one."""
    # The position comes first, because two items may have the same id and each needs a marker of
    # its own in the database.
    if isinstance(item, str) and item and len(item) <= 60:
        return f"{index}:{item}"
    if isinstance(item, Mapping):
        for key in ("id", "name", "key"):
            if isinstance(item.get(key), str | int):
                return f"{index}:{item[key]}"
    return str(index)


def item_states(names: Sequence[str], state: RunState) -> dict[str, ParallelItemResult]:
    """Returns how far the items of the current step are.

    Items that failed are tried again in another fan-out with the same key when a human says so.
    """
    states = dict.fromkeys(names, ParallelItemResult("pending"))
    remaining = list(names)
    for identity, record in _rounds(state):
        failed: list[str] = []
        for index, name in enumerate(remaining):
            before = states[name]
            states[name] = now = _item_state(state, record, f"{identity}[{index}]", index, before)
            if now.status == "failed":
                failed.append(name)
        remaining = failed
    return states


def has_items(state: RunState) -> bool:
    """Whether the items of the current step have begun."""
    return any(_rounds(state))


def _rounds(state: RunState) -> Iterator[tuple[str, EffectRecord]]:
    records = state.effects.get("", {})
    number = 1
    # Each retry that a human asks for is another fan-out with the same key. It has the failed items
    # only, so their positions begin at 0 again.
    while (record := records.get(f"{ITEM_KEY}#{number}")) is not None:
        yield f"{ITEM_KEY}#{number}", record
        number += 1


def _item_state(
    state: RunState, record: EffectRecord, scope: str, index: int, before: ParallelItemResult
) -> ParallelItemResult:
    if scope in state.items:
        done = state.items[scope]
        output = done if isinstance(done, Mapping) else {"result": done}
        retries = output.get(RETRIES, before.retry_count)
        return ParallelItemResult("completed", output.get("result"), retry_count=retries)
    problems = state.item_failures.get(scope, [])
    raised = ((record.error or {}).get("failures") or {}).get(str(index))
    retries = before.retry_count + len(problems)
    if raised is not None or len(problems) > MAX_RETRIES:
        # An attempt that could not be judged failed as well.
        failures = max(retries, before.retry_count + 1)
        return ParallelItemResult("failed", error=raised or problems[-1], retry_count=failures)
    error = problems[-1] if problems else before.error
    return ParallelItemResult("pending", error=error, retry_count=retries)
