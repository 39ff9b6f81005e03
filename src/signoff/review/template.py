"""The templates of prompts: files with placeholders, which a flow can replace by its own.

`{{name}}` is replaced by a value, and a line with nothing but an empty value is dropped.
`{{#name}}...{{/name}}` is kept only if the value is not empty, `{{^name}}...{{/name}}` only if it
is. `{{! ... }}` is a comment. Values are inserted last, so placeholders in them stay as they are:
an artifact or a finding cannot pull other material into a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

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
_BRACES = re.compile(r"\{\{([^{}\n]*)\}\}")
"""A tag, or what its author takes for one, such as `{{ artifact }}`."""
# A tag on a line of its own takes the whole line with it.
_TAG_LINE = re.compile(r"^(\{\{[#^/]\w+\}\})\n", re.MULTILINE)
_SECTION = re.compile(r"\{\{([#^])(\w+)\}\}(.*?)\{\{/\2\}\}", re.DOTALL)
_VALUE_LINE = re.compile(r"^\{\{(\w+)\}\}\n", re.MULTILINE)
_GAP = re.compile(r"\n{3,}")


class TemplateProblem(NamedTuple):
    """One mistake in a user's template."""

    what: str
    remedy: str
    line: int | None = None
    """None if it is about the whole template."""


@cache
def built_in(name: str) -> str:
    """Returns the text of a template that comes with signoff."""
    return (_FOLDER / f"{name}{SUFFIX}").read_text("utf-8")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Returns a template with its values filled in; it ends with one line break."""
    present = frozenset(name for name, value in values.items() if value.strip())
    return _TAG.sub(lambda tag: values[tag[2]], _layout(template, present)) + "\n"


# The prompts of all critics of a step have the same layout.
@lru_cache(maxsize=32)
def _layout(template: str, present: frozenset[str]) -> str:
    """Returns a template with only the sections and lines that its present values leave."""
    text = _TAG_LINE.sub(r"\1", _COMMENT.sub("", template) + "\n")
    text = _keep_sections(text, present)
    text = _VALUE_LINE.sub(lambda line: line[0] if line[1] in present else "", text)
    return _GAP.sub("\n\n", text).strip("\n")


def problems(name: str, text: str) -> Iterator[TemplateProblem]:
    """Yields what is wrong with a user's template."""
    valid = sorted(placeholders_of(name))
    # Line breaks of comments are kept, so that lines can be counted.
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    printed = set[str]()
    unknown = set[str]()
    for braces in _BRACES.finditer(text):
        tag = _TAG.fullmatch(braces[0])
        if tag is None or tag[2] not in valid:
            label = "{{" + (tag[2] if tag else braces[1]) + "}}"
            if label not in unknown:
                remedy = _closest(label, valid)
                yield TemplateProblem(f"unknown placeholder {label}", remedy, _line(braces))
            unknown.add(label)
        elif not tag[1]:
            printed.add(tag[2])
    for missing in sorted(REQUIRED[name] - printed):
        what = f"{{{{{missing}}}}} is missing"
        yield TemplateProblem(what, "without it the agent would not see what it is about")
    yield from _unbalanced(text)


def placeholders_of(name: str) -> set[str]:
    """Returns the placeholders that a template may use: those of the built-in ones of its role."""
    role = name.removesuffix(_SYSTEM)
    parts = [part for part in (role, f"{role}{_SYSTEM}") if part in REQUIRED]
    return set().union(*(_names(built_in(part)) for part in parts))


def _keep_sections(text: str, present: frozenset[str]) -> str:
    def keep(section: re.Match[str]) -> str:
        kind, name, body = section.groups()
        return _keep_sections(body, present) if (name in present) == (kind == "#") else ""

    return _SECTION.sub(keep, text)


def _names(text: str) -> set[str]:
    return {name for _, name in _TAG.findall(_COMMENT.sub("", text))}


def _closest(label: str, valid: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(label.strip("{#^/} "), valid, n=1, cutoff=0.5)
    suggestion = f"did you mean {{{{{close[0]}}}}}? " if close else ""
    return f"{suggestion}valid: {', '.join(valid) or 'none in this template'}"


def _unbalanced(text: str) -> Iterator[TemplateProblem]:
    open_sections: list[re.Match[str]] = []
    for tag in _TAG.finditer(text):
        kind, name = tag.groups()
        if kind in ("#", "^"):
            open_sections.append(tag)
        elif kind == "/" and (not open_sections or open_sections.pop()[2] != name):
            what = f"{{{{/{name}}}}} closes no section"
            yield TemplateProblem(what, f"begin it with {{{{#{name}}}}}", _line(tag))
            return
    for tag in open_sections:
        what = f"the section {tag[0]} is not closed"
        yield TemplateProblem(what, f"end it with {{{{/{tag[2]}}}}}", _line(tag))


def _line(tag: re.Match[str]) -> int:
    return tag.string.count("\n", 0, tag.start()) + 1
