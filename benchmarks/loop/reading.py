"""What a simulated agent understands of a prompt: no more than what every version puts there.

Material is found by its delimiters, findings by the reference in their sentence, and their
status by its word in the same entry. So an agent behaves as if it had memory only if the prompt
really contains that memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

DISMISSED, OPEN, FIXED = "dismissed", "open", "fixed"
"""The status of a known finding, in the words of the prompt."""

_STATUS = re.compile(rf"\b({DISMISSED}|{OPEN}|{FIXED})\b", re.IGNORECASE)
_REF = re.compile(r"\(ref ([\w-]+)\)")
_ISSUE_ID = re.compile(r"\b[a-z]+-\d{3}\b")
_NAME = re.compile(r"([A-Za-z0-9][\w.-]*):")


def with_ref(sentence: str, ref: str) -> str:
    """Returns a sentence about a finding with the reference by which it is found again."""
    return f"{sentence} (ref {ref})"


def material(prompt: str, name: str) -> str | None:
    """Returns the material between the delimiters of a name; None if there is none."""
    found = _enclosure(name).search(prompt)
    return found["text"] if found else None


def critiques(prompt: str) -> str:
    """Returns the part of a judge's prompt that holds what is to be decided now."""
    return material(prompt, "CRITIQUES") or prompt


def issues(text: str) -> dict[str, str]:
    """Returns the id under which each finding is shown, by the finding's reference."""
    shown: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        found = _ISSUE_ID.search(line) or _NAME.search(line)
        if found:
            name = found[0].rstrip(":")
        for ref in _REF.findall(line):
            shown.setdefault(ref, name)
    return shown


def work(prompt: str) -> list[str]:
    """Returns the references of the findings that a fixer is asked to fix, in order."""
    refs = [
        ref
        for entry in _entries(_without(prompt, "ARTIFACT", "PREVIOUS"))
        if DISMISSED not in entry.lower()
        for ref in _REF.findall(entry)
    ]
    return list(dict.fromkeys(refs))


def known(prompt: str, ref: str, quote: str) -> str | None:
    """Returns the status of a finding in the list of known ones; None if it is not listed."""
    start = " ".join(quote.split())[:40]
    for entry in _entries(_without(prompt, "ARTIFACT", "CRITIQUES", "GOAL")):
        if ref not in _REF.findall(entry) and start not in entry:
            continue
        status = _STATUS.search(entry.replace(start, ""))
        if status:
            return status[0].lower()
    return None


def _without(prompt: str, *names: str) -> str:
    for name in names:
        prompt = _enclosure(name).sub("", prompt)
    return prompt


def _entries(text: str) -> Iterator[str]:
    """Yields the entries of lists: a line with the indented lines after it, on one line."""
    entry: list[str] = []
    for line in text.splitlines():
        if entry and not line.startswith(" "):
            yield " ".join(" ".join(entry).split())
            entry = []
        entry.append(line)
    yield " ".join(" ".join(entry).split())


@cache
def _enclosure(name: str) -> re.Pattern[str]:
    return re.compile(
        rf"^<<<(?P<mark>{name} \w+)\n(?P<text>.*?)\n(?P=mark)>>>", re.MULTILINE | re.DOTALL
    )
