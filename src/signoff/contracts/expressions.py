"""Conditions written as text: CEL over `ctx`, `result`, `results`, `checkpoint`, `params`, `hint`.

`===` and `!==`, as in JavaScript, are read as `==` and `!=`, except inside strings.

Below `ctx` and the run's own data, every name is known, so a wrong one is a mistake of the author
that is found before anything runs. What steps return is not known before they do. If an expression
cannot be evaluated then, the worker answers for it if the expression reads the worker's result
(`StepFailed`), and the author if it does not, or if what is missing is something else
(`BadExpression`): a retry could not help then, so the run stops and no attempt is used up.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from signoff.contracts.checkpoint import OWN_NAMES, RESULTS
from signoff.core.errors import AuthorError, StepFailed
from signoff.documents.bounded import EvaluationFailed, OutOfBounds, evaluate, variables_of

CTX_NAMES = {
    "run_id": "runId",
    "step": "step",
    "attempt": "attempt",
    "item": "item",
    "feedback": "feedback",
    "result": "result",
    "params": "params",
    "hint": "nextStepHint",
    "checkpoint": "checkpoint",
}
"""The fields of `ctx`, and their names in camel case."""

# The evaluator tells which variables an expression has, but not what is read below them. These
# patterns find the paths in its text.
_BLANK = r"\s*\.\s*"
_OF_CTX = re.compile(rf"(?<![\w.])ctx{_BLANK}(\w+)")
_OF_CHECKPOINT = re.compile(
    rf"(?<![\w.])(?:ctx{_BLANK})?checkpoint"
    rf"(?:{_BLANK}(?P<name>\w+)|\s*\[\s*[\"'](?P<quoted>[^\"']*)[\"']\s*\])"
)
_OF_RESULTS = re.compile(
    rf"(?<![\w.])(?:(?:ctx{_BLANK})?checkpoint{_BLANK})?{RESULTS}"
    rf"(?:{_BLANK}(\w+)|\s*\[\s*[\"']([^\"']*)[\"']\s*\])"
)
_HYPHEN = re.compile(rf"{RESULTS}{_BLANK}\w+-\w")

_QUOTED = r"\"[^\"\\\n]*\"|'[^'\\\n]*'"
_KEY = re.compile(rf"{_BLANK}(?P<name>\w+)|\[\s*(?:(?P<quoted>{_QUOTED})|(?P<index>\d+))\s*\]")
_TEXT_OR_PATH = re.compile(
    rf"(?:{_QUOTED})|(?<![\w.])(?P<path>[A-Za-z_]\w*"
    rf"(?:{_BLANK}[A-Za-z_]\w*(?!\w|\s*\()|\s*\[\s*(?:{_QUOTED}|\d+)\s*\])*)"
)

Keys = tuple[str | int, ...]
"""A value that an expression reads: `results["sign-off"].notes[0]` as its keys."""

_SNAKE = {camel: snake for names in (CTX_NAMES, OWN_NAMES) for snake, camel in names.items()}


def unknown_name(text: str) -> str:
    """Returns the first unknown name in an expression and what is valid; empty if there is none.

    `text` has empty strings in place of its strings, which are not names.
    """
    for name in _OF_CTX.findall(text):
        if name not in CTX_NAMES and name not in CTX_NAMES.values():
            valid = ", ".join(sorted(CTX_NAMES))
            return f"unknown name ctx.{name}; valid: {valid}; a parameter is params.{name}"
    if _HYPHEN.search(text):
        return f'the name of a step with a hyphen needs quotes: {RESULTS}["step-name"]'
    return ""


def _keys(path: str) -> Keys:
    root = re.match(r"\w+", path)
    keys: list[str | int] = [root.group() if root else path]
    for match in _KEY.finditer(path, root.end() if root else 0):
        quoted = match["quoted"]
        keys.append(int(match["index"]) if match["index"] else match["name"] or quoted[1:-1])
    return tuple(keys)


def is_of_result(keys: Keys, steps: Collection[str], more: Collection[str] = ()) -> bool:
    """Whether keys lead to what a worker has just returned, as the results of these steps.

    `more` are names that depend on it as well.
    """
    # `ctx.result`, `result`, `results.<step>` and `checkpoint.results.<step>` are four ways to the
    # same value, and the worker answers for all of them.
    rest = keys[1:] if keys[0] == "ctx" else keys
    if rest[:1] == ("checkpoint",):
        rest = rest[1:] if rest[1:2] == (RESULTS,) else ()
    if rest[:1] == (RESULTS,):
        return bool(rest[1:]) and rest[1] in steps
    return bool(rest) and rest[0] in {"result", "hint", CTX_NAMES["hint"], *more}


def written(keys: Keys) -> str:
    """Returns keys as an author writes them."""
    parts = (
        f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"
        for key in keys[1:]
    )
    return f"{keys[0]}{''.join(parts)}"


LONGEST = 2_000
"""Characters of an expression; longer ones should be functions."""

MOST_SUMS = 20
"""Additions in an expression without loops: each one copies the text built so far."""

NAMES = frozenset({"ctx", "result", "results", "checkpoint", "params", "hint"})
"""The names that expressions can use."""

_WORD = re.compile(r"[A-Za-z_]\w*")

_ASSIGNS = re.compile(r"(?<![=!<>])=(?!=)")
_DATABASE = re.compile(r"\bctx\s*\.\s*(?:db|database)\b")

_GAP = r"(?:\s|//[^\n]*\n)*"
_LOOP = rf"\b(?:all|exists|exists_one|map|filter){_GAP}\("
_EACH = re.compile(rf"{_LOOP}{_GAP}([A-Za-z_]\w*)")
_TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "string", "type", "uint"})

_STRING = r"""
    [bB]?[rR][bB]?(?:\"\"\".*?\"\"\"|'''.*?'''|"[^"\n]*"|'[^'\n]*')
    |\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
"""
_TOKEN = re.compile(rf"{_STRING}|(?P<strict>===|!==)|.", re.VERBOSE | re.DOTALL)
_SYNTAX = re.compile(rf"{_STRING}|//[^\n]*|(?P<loop>{_LOOP})|.", re.VERBOSE | re.DOTALL)


class BadExpression(AuthorError):  # noqa: N818  # public name
    """A condition cannot be read or evaluated."""


class _Gap(NamedTuple):
    """Where a value that an expression reads is not there."""

    key: str
    text: str
    is_type: bool
    """Whether a value of another type is where the key should be."""


class Expression:
    """A condition, parsed once and evaluated as often as needed."""

    def __init__(self, text: str, more_names: frozenset[str] = frozenset()) -> None:
        """Parses the text; raises `BadExpression`."""
        self.text = text
        self._more_names = more_names
        _check(text, NAMES | more_names)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that it may use; all its words count, so there can be too many."""
        return NAMES & frozenset(_WORD.findall(self.text))

    @cached_property
    def ctx_names(self) -> frozenset[str]:
        """The names that it reads right below `ctx`."""
        return frozenset(_SNAKE.get(name, name) for name in _OF_CTX.findall(self.text))

    @cached_property
    def checkpoint_names(self) -> frozenset[str]:
        """The names that it reads right below `checkpoint`."""
        found = _OF_CHECKPOINT.finditer(self.text)
        return frozenset(match["name"] or match["quoted"] for match in found)

    @cached_property
    def result_steps(self) -> frozenset[str]:
        """The steps whose results it reads."""
        return frozenset(name or quoted for name, quoted in _OF_RESULTS.findall(self.text))

    @cached_property
    def is_quick(self) -> bool:
        """Whether it takes no noticeable time: it has no loops and builds no long texts."""
        loops = any(match.lastgroup == "loop" for match in _SYNTAX.finditer(self.text))
        return not loops and self.text.count("+") <= MOST_SUMS

    def evaluate(self, values: Mapping[str, Any], steps: Collection[str] = ()) -> Any:
        """Returns its value; `steps` are those whose results a worker has just returned.

        If it has none, raises `StepFailed` for that worker or `BadExpression` for the author.
        """
        return self._evaluate(values, steps, object)

    def holds(self, values: Mapping[str, Any], steps: Collection[str] = ()) -> bool:
        """Returns whether it is true; raises the same if it is neither true nor false."""
        return bool(self._evaluate(values, steps, bool))

    def _evaluate(self, values: Mapping[str, Any], steps: Collection[str], kind: type) -> Any:
        try:
            value = evaluate(self._cel, dict(values), linear=self.is_quick)
        except EvaluationFailed as error:
            raise self._fault(error, values, steps) from error
        except OutOfBounds as error:
            fault = StepFailed if self._paths_of_result(steps) else BadExpression
            raise fault(f"{self.text!r}: {error}; use a function") from error
        if isinstance(value, kind):
            return value
        odd = EvaluationFailed("TypeError", f"it is {value!r:.80}, neither true nor false")
        raise self._fault(odd, values, steps)

    def _fault(
        self, error: EvaluationFailed, values: Mapping[str, Any], steps: Collection[str]
    ) -> StepFailed | BadExpression:
        """Returns what to raise, for the worker or for the author."""
        read = self._paths_of_result(steps)
        gaps = [(keys in read, gap) for keys in self._paths if (gap := _gap(values, keys))]
        for is_of_worker, gap in gaps:
            explains = repr(gap.key) == str(error) if error.kind == "KeyError" else gap.is_type
            if explains:
                author = BadExpression(f"{self.text!r}: {gap.text}")
                return StepFailed(gap.text) if is_of_worker else author
        reason = f"{self.text!r}: {_shortened(error)}"
        if not read:
            return BadExpression(reason)
        # The worker cannot see the values that the expression reads, so it is told their types.
        types = (f"{written(keys)} is {_kind(_value(values, keys)[1])}" for keys in read)
        return StepFailed(f"{reason}; {', '.join(types)}")

    @cached_property
    def _paths(self) -> list[Keys]:
        """Every value that it reads by name, once; calls are not names."""
        found = (match["path"] for match in _TEXT_OR_PATH.finditer(self.text) if match["path"])
        return list(dict.fromkeys(map(_keys, found)))

    def _paths_of_result(self, steps: Collection[str]) -> list[Keys]:
        return [keys for keys in self._paths if is_of_result(keys, steps, self._more_names)]

    @cached_property
    def _cel(self) -> str:
        return plain_cel(self.text)


# The same few conditions are evaluated for every item of a fan-out.
parse_expression = lru_cache(maxsize=512)(Expression)


def _check(text: str, valid_names: frozenset[str]) -> None:
    """Raises `BadExpression` for a text that is not an expression or uses unknown names."""
    # The limits come first: the parser must not see a text of megabytes.
    if not text.strip():
        raise BadExpression("the expression is empty")
    if len(text) > LONGEST:
        raise BadExpression(f"the expression has {len(text)} characters; at most {LONGEST}")
    try:
        names = variables_of(plain_cel(text))
    except OutOfBounds as error:
        raise BadExpression(f"{text!r} cannot be parsed: {error}; use a function") from error
    except EvaluationFailed as error:
        first = next(iter(str(error).splitlines()), "")
        reason = first.split("ERROR:")[-1].strip()
        hint = "; did you mean ==?" if _ASSIGNS.search(_without_strings(text)) else ""
        raise BadExpression(f"{text!r} is not an expression: {reason}{hint}") from error
    if "db" in names or _DATABASE.search(_without_strings(text)):
        raise BadExpression(f"{text!r}: expressions cannot use the database; use a function")
    if problem := unknown_name(_without_strings(text)):
        raise BadExpression(f"{text!r}: {problem}")
    unknown = set(names) - valid_names - _TYPES - set(_EACH.findall(text))
    if unknown:
        listed, valid = ", ".join(sorted(unknown)), ", ".join(sorted(valid_names))
        raise BadExpression(f"{text!r}: unknown name {listed}; valid: {valid}")


def _without_strings(text: str) -> str:
    return "".join(
        match.group() if match.lastgroup or len(match.group()) == 1 else "''"
        for match in _TOKEN.finditer(text)
    )


def plain_cel(text: str) -> str:
    """Returns an expression in CEL: with `==` for JavaScript's `===`."""
    return "".join(
        match.group()[:2] if match.lastgroup == "strict" else match.group()
        for match in _TOKEN.finditer(text)
    )


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


def _value(values: Mapping[str, Any], keys: Keys) -> tuple[bool, Any]:
    """Returns whether there is a value, and the value."""
    value: Any = values
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return False, None
    return True, value


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
