"""Conditions written as text: CEL over `ctx`, `result`, `results`, `checkpoint`, `params`, `hint`.

`===` and `!==`, as in JavaScript, are read as `==` and `!=`, except inside strings.
What an expression that cannot be evaluated means for a run is decided in `blame`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from typing import Any

from signoff.contracts import expression_names
from signoff.contracts.blame import BadExpression, Trial
from signoff.documents.bounded import EvaluationFailed, OutOfBounds, evaluate, variables_of
from signoff.errors import StepFailed

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
        return expression_names.ctx_names(self.text)

    @cached_property
    def checkpoint_names(self) -> frozenset[str]:
        """The names that it reads right below `checkpoint`."""
        return expression_names.checkpoint_names(self.text)

    def unknown_checkpoint_names(self, known: frozenset[str]) -> list[str]:
        """Returns the names below `checkpoint` that are not known; texts are not names."""
        plain = expression_names.checkpoint_names(_without_strings(self.text))
        quoted = expression_names.quoted_checkpoint_names(self.text)
        return sorted((plain | quoted) - known - {""})

    @cached_property
    def result_steps(self) -> frozenset[str]:
        """The steps whose results it reads."""
        return expression_names.result_steps(self.text)

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
            value = self._value(values, kind)
            if not isinstance(value, EvaluationFailed):
                return value
            raise self._trial(values, steps, kind).fault(value) from value
        except OutOfBounds as error:
            fault = StepFailed if self._paths_of_result(steps) else BadExpression
            raise fault(f"{self.text!r}: {error}; use a function") from error

    def _value(self, values: Mapping[str, Any], kind: type) -> Any:
        """Returns its value, or why it has none of this type."""
        try:
            value = evaluate(self._cel, dict(values), linear=self.is_quick)
        except EvaluationFailed as error:
            return error
        if isinstance(value, kind):
            return value
        return EvaluationFailed("TypeError", f"it is {value!r:.80}, neither true nor false")

    def _trial(self, values: Mapping[str, Any], steps: Collection[str], kind: type) -> Trial:
        def problem_with(tried: Mapping[str, Any]) -> EvaluationFailed | None:
            value = self._value(tried, kind)
            return value if isinstance(value, EvaluationFailed) else None

        read = self._paths_of_result(steps)
        others = [keys for keys in self._paths if keys not in read]
        return Trial(self.text, values, read, others, self.is_quick, problem_with)

    @cached_property
    def _paths(self) -> list[expression_names.Keys]:
        return expression_names.paths(self.text)

    def _paths_of_result(self, steps: Collection[str]) -> list[expression_names.Keys]:
        is_of_result = expression_names.is_of_result
        return [keys for keys in self._paths if is_of_result(keys, steps, self._more_names)]

    @cached_property
    def _cel(self) -> str:
        return plain_cel(self.text)


# The same few conditions are evaluated for every item of a fan-out.
parse_expression = lru_cache(maxsize=512)(Expression)


def _check(text: str, valid_names: frozenset[str]) -> None:
    """Raises `BadExpression` for a text that is not an expression or uses unknown names."""
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
    if problem := expression_names.unknown_name(_without_strings(text)):
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
