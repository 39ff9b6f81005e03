"""The templates of prompts: files with placeholders, which a flow can replace by its own.

`{{name}}` is replaced by a value, and a line with nothing but an empty value is dropped.
`{{#name}}...{{/name}}` is kept only if the value is not empty, `{{^name}}...{{/name}}` only if it
is. `{{! ... }}` is a comment. Values are inserted last, so placeholders in them stay as they are:
an artifact or a finding cannot pull other material into a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

SUFFIX = ".md"
LONGEST_TEMPLATE = 100_000
"""Characters; a longer file is not a template that a user wrote."""

REQUIRED: Mapping[str, frozenset[str]] = {
    "author": frozenset({"goal"}),
    "author_system": frozenset(),
    "author_brief": frozenset({"goal"}),
    "critic": frozenset({"artifact", "constraints"}),
    "critic_system": frozenset(),
    "fixer": frozenset({"filename", "bill_of_work"}),
    "fixer_system": frozenset(),
    "judge": frozenset({"artifact", "critiques"}),
    "judge_system": frozenset(),
    "severities": frozenset(),
    "verifier": frozenset({"passage", "claim"}),
    "verifier_system": frozenset(),
}
"""Every template, with the placeholders it cannot do without."""

_FOLDER = Path(__file__).with_name("templates")
_SYSTEM = "_system"

_COMMENT = re.compile(r"\{\{!.*?\}\}\n?", re.DOTALL)
_TAG = re.compile(r"\{\{([#^/]?)(\w+)\}\}")
# A tag on a line of its own takes the whole line with it.
_TAG_LINE = re.compile(r"^(\{\{[#^/]\w+\}\})\n", re.MULTILINE)
_SECTION = re.compile(r"\{\{([#^])(\w+)\}\}(.*?)\{\{/\2\}\}", re.DOTALL)
_VALUE_LINE = re.compile(r"^\{\{(\w+)\}\}\n", re.MULTILINE)
_GAP = re.compile(r"\n{3,}")


@cache
def built_in(name: str) -> str:
    """Returns the text of a template that comes with signoff."""
    return (_FOLDER / f"{name}{SUFFIX}").read_text("utf-8")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Returns a template with its values filled in; it ends with one line break."""
    text = _TAG_LINE.sub(r"\1", _COMMENT.sub("", template) + "\n")
    text = _keep_sections(text, values)
    text = _VALUE_LINE.sub(lambda line: line[0] if values[line[1]].strip() else "", text)
    text = _GAP.sub("\n\n", text).strip("\n")
    return _TAG.sub(lambda tag: values[tag[2]], text) + "\n"


def problems(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a user's template, each with its remedy."""
    valid = placeholders_of(name)
    used = _names(text)
    for unknown in sorted(used - valid):
        yield f"unknown placeholder {{{{{unknown}}}}}", f"valid: {', '.join(sorted(valid))}"
    for missing in sorted(REQUIRED[name] - _printed(text)):
        yield f"{{{{{missing}}}}} is missing", "without it the agent would not see what it is about"
    yield from _unbalanced(text)


def placeholders_of(name: str) -> set[str]:
    """Returns the placeholders that a template may use: those of the built-in ones of its role."""
    role = name.removesuffix(_SYSTEM)
    parts = [part for part in (role, f"{role}{_SYSTEM}") if part in REQUIRED]
    return set().union(*(_names(built_in(part)) for part in parts))


def _keep_sections(text: str, values: Mapping[str, str]) -> str:
    def keep(section: re.Match[str]) -> str:
        kind, name, body = section.groups()
        empty = not values[name].strip()
        return _keep_sections(body, values) if empty == (kind == "^") else ""

    return _SECTION.sub(keep, text)


def _names(text: str) -> set[str]:
    return {name for _, name in _TAG.findall(_COMMENT.sub("", text))}


def _printed(text: str) -> set[str]:
    """Returns the placeholders whose values a template prints, and not only tests."""
    return {name for kind, name in _TAG.findall(_COMMENT.sub("", text)) if not kind}


def _unbalanced(text: str) -> Iterator[tuple[str, str]]:
    open_sections: list[str] = []
    for kind, name in _TAG.findall(_COMMENT.sub("", text)):
        if kind in ("#", "^"):
            open_sections.append(name)
        elif kind == "/" and (not open_sections or open_sections.pop() != name):
            yield f"{{{{/{name}}}}} closes no section", f"begin it with {{{{#{name}}}}}"
            return
    for name in open_sections:
        yield f"the section {{{{#{name}}}}} is not closed", f"end it with {{{{/{name}}}}}"
