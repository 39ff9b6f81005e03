"""Whose mistake it is that an expression cannot be evaluated: the worker's or the author's.

One rule decides. If another result of the step would make the expression true or false, the worker
has made the mistake: the result lacks a key, or has a value of another type. Then the attempt has
failed (`StepFailed`), and the worker gets one sentence about it. If no result would, the author has
(`BadExpression`): a name that is not there, a step without a result, types that never fit. A retry
could not help, so the run stops and no attempt is used up.

Both answers come from trying: the expression is evaluated with values of every type of JSON where
it reads the result. If that shows nothing, because the error depends on more than names and types,
it is the worker's, which costs a retry at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, NamedTuple

from signoff.contracts.expression_names import Keys, written
from signoff.contracts.results import RESULTS
from signoff.documents.bounded import EvaluationFailed
from signoff.errors import AuthorError, StepFailed

MOST_TRIES = 200
"""Other results that are tried as a whole."""

_TRIES: Mapping[str, tuple[Any, ...]] = {
    "a boolean": (True,),
    "a whole number": (1,),
    "a fraction": (1.5,),
    "a text": ("", "1", "1s", "2000-01-01T00:00:00Z"),
    "a list": ([],),
    "an object": ({},),
}
"""The types of JSON, each with values to try: texts may be read as numbers, durations and times."""

_MISFITS = frozenset({"KeyError", "RuntimeError", "TypeError"})
"""Errors about names and types; others, such as a division by zero, depend on the value."""


class BadExpression(AuthorError):  # noqa: N818  # public name
    """A condition cannot be read or evaluated."""


class _Gap(NamedTuple):
    """Where a value that an expression reads is not there."""

    key: str
    text: str
    is_type: bool
    """Whether a value of another type is where the key should be."""


@dataclass
class Trial:
    """An expression that could not be evaluated, and what it reads."""

    text: str
    values: Mapping[str, Any]
    result: Sequence[Keys]
    """What it reads of the worker's result."""
    others: Sequence[Keys]
    """What it reads besides."""
    is_quick: bool
    """Whether it may be evaluated many times with the values that it has."""
    problem_with: Callable[[Mapping[str, Any]], EvaluationFailed | None]
    """Evaluates it with other values; returns None if that works."""
    _failures: list[EvaluationFailed] = field(default_factory=list)

    def fault(self, error: EvaluationFailed) -> StepFailed | BadExpression:
        """Returns what to raise, for the worker or for the author."""
        explained = _reason(_gaps(self.values, self.result), error)
        unknown = "" if explained else _reason(_gaps(self.values, self.others), error)
        # Another result may only hide an unknown name, as in `result.done && results.later.n`.
        if self.result and not (unknown and error.kind == "KeyError"):
            misfit = next(filter(None, map(self._misfit, self._leaves)), "")
            if misfit or self._fits_any():
                return StepFailed(explained or misfit or f"{self.text!r}: {_shortened(error)}")
        return BadExpression(f"{self.text!r}: {self._mistake(error)}")

    @property
    def _leaves(self) -> list[Keys]:
        """What it reads of the result, without what only leads to something else that it reads."""
        return [
            keys
            for keys in self.result
            if not any(each != keys and each[: len(keys)] == keys for each in self.result)
        ]

    def _misfit(self, keys: Keys) -> str:
        """Returns what is wrong if only this one value is; empty if that is not so."""
        if not self.is_quick:
            return ""
        kinds = [
            kind
            for kind, tries in _TRIES.items()
            if any(self._is_possible(_with_value(self.values, keys, each)) for each in tries)
        ]
        is_there, value = _value(self.values, keys)
        found = _kind(value)
        if not kinds or not is_there or found in kinds:
            return ""
        return f"{written(keys)} is {found}, not {' or '.join(kinds)}"

    def _fits_any(self) -> bool:
        """Whether another result would do, or might: not all of many are tried."""
        tries = [each for values in _TRIES.values() for each in values]
        combined = product(tries, repeat=len(self._leaves))
        for chosen in islice(combined, MOST_TRIES):
            values = self.values
            for keys, value in zip(self._leaves, chosen, strict=True):
                values = _with_value(values, keys, value)
            if self._is_possible(values):
                return True
        return next(combined, None) is not None

    def _is_possible(self, values: Mapping[str, Any]) -> bool:
        failure = self.problem_with(values)
        if failure is None or failure.kind not in _MISFITS:
            return True
        self._failures.append(failure)
        # A name that the expression does not spell out is one of the values that were tried.
        spelled = {repr(str(key)) for keys in (*self.result, *self.others) for key in keys}
        return failure.kind == "KeyError" and str(failure) not in spelled

    def _mistake(self, error: EvaluationFailed) -> str:
        """Returns what the author has to change."""
        failures = [error, *self._failures]
        gaps = _gaps(self.values, self.others)
        unknown = next(filter(None, (_reason(gaps, each) for each in failures)), "")
        types = next((each for each in failures if each.kind != "KeyError"), error)
        return unknown or _shortened(types)


def _gaps(values: Mapping[str, Any], read: Sequence[Keys]) -> list[_Gap]:
    return [gap for keys in read if (gap := _gap(values, keys)) is not None]


def _gap(values: Mapping[str, Any], keys: Keys) -> _Gap | None:
    """Returns where a value is not there; the names of functions and loops are no values."""
    for depth in range(1, len(keys)):
        (is_there, value), key = _value(values, keys[:depth]), keys[depth]
        if not is_there:
            return None
        if isinstance(value, Mapping) and key not in value:
            missing = f"{written(keys[:depth])} has no {key!r}"
            if keys[depth - 1] == RESULTS:
                missing = f"step {key!r} has no result yet"
            elif keys[depth - 1] == "params":
                missing = f"parameter {key!r} is missing; start the run with -i {key}=..."
            return _Gap(str(key), missing, is_type=False)
        if not isinstance(value, Mapping if isinstance(key, str) else Mapping | list):
            wanted = "an object" if isinstance(key, str) else "a list"
            text = f"{written(keys[:depth])} is {_kind(value)}, not {wanted}"
            return _Gap(str(key), text, is_type=True)
    return None


def _reason(gaps: Sequence[_Gap], error: EvaluationFailed) -> str:
    """Returns the gap that explains an error; empty if none does."""
    if error.kind == "KeyError":
        return next((gap.text for gap in gaps if repr(gap.key) == str(error)), "")
    return next((gap.text for gap in gaps if gap.is_type), "")


def _value(values: Mapping[str, Any], keys: Keys) -> tuple[bool, Any]:
    """Returns whether there is a value, and the value."""
    value: Any = values
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return False, None
    return True, value


def _with_value(node: Any, keys: Keys, value: Any) -> Any:
    """Returns the values with another one in this place, and with everything that leads there."""
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(key, int) and not isinstance(node, Mapping):
        items = list(node) if isinstance(node, list | tuple) else []
        items += [None] * (key + 1 - len(items))
        items[key] = _with_value(items[key], rest, value)
        return items
    entries = dict(node) if isinstance(node, Mapping) else {}
    entries[key] = _with_value(entries.get(key), rest, value)
    return entries


def _kind(value: Any) -> str:
    """Returns the type of a value in words."""
    match value:
        case None:
            return "empty"
        case bool():
            return "a boolean"
        case int():
            return "a whole number"
        case float():
            return "a fraction"
        case str():
            return "a text"
        case Mapping():
            return "an object"
        case _:
            return "a list"


def _shortened(error: EvaluationFailed) -> str:
    """Returns the first sentence of an error; those of the evaluator continue with advice."""
    first = str(error).strip().partition(". ")[0].partition("\n")[0]
    if first.startswith("No such overload"):
        return "the types of its values do not fit together"
    return f"there is no {first}" if error.kind == "KeyError" else first
