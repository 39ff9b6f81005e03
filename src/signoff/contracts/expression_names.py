"""Which names an expression uses below `ctx`, `checkpoint` and `results`.

Below `ctx` and the run's own data, every name is known, so a wrong one is a mistake of the
author that is found before anything runs. What steps return is not known before they do.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from signoff.contracts.results import OWN_NAMES, RESULTS

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

_PARTS = {
    "gate": frozenset({"gate", "option", "input"}),
    "pending_retry": frozenset({"step", "error", "attempt"}),
}
"""The fields of the run's own data that have fields of their own."""

_BLANK = r"\s*\.\s*"
_OF_CTX = re.compile(rf"(?<![\w.])ctx{_BLANK}(\w+)")
_OF_CHECKPOINT = re.compile(
    rf"(?<![\w.])(?:ctx{_BLANK})?checkpoint"
    rf"(?:{_BLANK}(?P<name>\w+)|\s*\[\s*[\"'](?P<quoted>[^\"']*)[\"']\s*\])(?:{_BLANK}(?P<part>\w+))?"
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
    for match in _OF_CHECKPOINT.finditer(text):
        known = _PARTS.get(_SNAKE.get(match["name"], match["name"]) or "")
        if known and match["part"] and match["part"] not in known:
            what = f"checkpoint.{match['name']}.{match['part']}"
            return f"unknown name {what}; valid: {', '.join(sorted(known))}"
    if _HYPHEN.search(text):
        return f'the name of a step with a hyphen needs quotes: {RESULTS}["step-name"]'
    return ""


def checkpoint_names(text: str) -> frozenset[str]:
    """Returns the names that an expression reads right below `checkpoint`."""
    return frozenset(match["name"] or match["quoted"] for match in _OF_CHECKPOINT.finditer(text))


def quoted_checkpoint_names(text: str) -> frozenset[str]:
    """Returns the names that an expression reads as `checkpoint["name"]`."""
    return frozenset(match["quoted"] or "" for match in _OF_CHECKPOINT.finditer(text))


def ctx_names(text: str) -> frozenset[str]:
    """Returns the names that an expression reads right below `ctx`, in snake case."""
    return frozenset(_SNAKE.get(name, name) for name in _OF_CTX.findall(text))


def result_steps(text: str) -> frozenset[str]:
    """Returns the steps whose results an expression reads."""
    return frozenset(name or quoted for name, quoted in _OF_RESULTS.findall(text))


def paths(text: str) -> list[Keys]:
    """Returns every value that an expression reads by name, once; calls are not names."""
    found = (match["path"] for match in _TEXT_OR_PATH.finditer(text) if match["path"])
    return list(dict.fromkeys(map(_keys, found)))


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
