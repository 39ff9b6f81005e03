"""The critics of the demo: four functions that read a text and return findings.

A finding quotes the text exactly, or says OMISSION. If the exact change is known, the
finding contains it as `edit` and the engine applies it; the others go back to the author.
"""

from __future__ import annotations

import re
from typing import Any

NAME = "sipwell"
MOST_WORDS = 32
FACTS = {
    "free": ("it is free", r"\bfree\b"),
    "no-account": ("it needs no account", r"\b(no|without|any)( an?)?( \w+)? account"),
    "date": ("it comes out on 1 May", r"\b1(st)? (of )?May\b|\bMay (the )?1(st)?\b"),
}
"""The facts that the text must contain, and how to recognize each of them."""

PRAISE = (
    "amazing awesome best delightful easy exciting fun great incredible innovative "
    "perfect powerful refreshing revolutionary simple stunning ultimate unique"
).split()

Finding = dict[str, Any]


def facts(text: str) -> list[Finding]:
    """Finds missing facts; adding them is the author's job."""
    return [
        _finding(rule, "HIGH", f"the text does not say that {words}", "OMISSION")
        | {"suggested_fix": f"Say that {words}."}
        for rule, (words, pattern) in FACTS.items()
        if not re.search(pattern, text, re.IGNORECASE)
    ]


def length(text: str) -> list[Finding]:
    """Finds a text that is too long; the author decides what to leave out."""
    words = text.split()
    if len(words) <= MOST_WORDS:
        return []
    message = f"the text has {len(words)} words, and {MOST_WORDS} are allowed"
    # Everything after the last allowed word is quoted, so that the author sees how much has to go.
    finding = _finding("words", "HIGH", message, " ".join(words[MOST_WORDS:]))
    return [finding | {"suggested_fix": f"Use at most {MOST_WORDS - 8} words."}]


def name(text: str) -> list[Finding]:
    """Finds a wrong spelling of the name, with the edit that fixes it."""
    return [
        _finding(
            "lower-case",
            "MEDIUM",
            f"the name must be lower case: {NAME!r}, not {match[0]!r}",
            match[0],
        )
        | {"edit": _replace_edit(text, *match.span(), NAME)}
        for match in re.finditer(rf"\b{NAME}\b", text, re.IGNORECASE)
        if match[0] != NAME
    ]


def tone(text: str) -> list[Finding]:
    """Finds praise and exclamation marks, with the edits that remove them."""
    # A full stop and not nothing: the sentence has to end.
    exclamations = [
        _finding("calm", "MEDIUM", "an exclamation mark", _with_context(text, *match.span()))
        | {"edit": _replace_edit(text, *match.span(), ".")}
        for match in re.finditer(r"!+", text)
    ]
    words = "|".join(PRAISE)
    praise = re.compile(rf"(?:\ba )?\b(?:{words})(?: and (?:{words}))?\b,? ?", re.IGNORECASE)
    return exclamations + [
        _finding("no-praise", "MEDIUM", f"{match[0].strip()!r} is praise", match[0].strip())
        | {"edit": _replace_edit(text, *match.span(), _article(text, match))}
        for match in praise.finditer(text)
    ]


def _article(text: str, match: re.Match[str]) -> str:
    """Returns what remains of `a great`: the article that fits the next word."""
    if not match[0].lower().startswith("a "):
        return ""
    article = "an " if text[match.end() : match.end() + 1].lower() in set("aeiou") else "a "
    return article.capitalize() if match[0][0] == "A" else article


def _finding(rule: str, severity: str, message: str, evidence: str) -> Finding:
    return {"rule_id": rule, "severity": severity, "finding": message, "evidence": evidence}


def _with_context(text: str, start: int, end: int) -> str:
    """Returns a passage with the words before it, so that a reader can find it."""
    return " ".join(text[max(0, start - 30) : end].split())


def _replace_edit(text: str, start: int, end: int, by: str) -> dict[str, str]:
    """Returns the edit of a passage, with just enough context to be unique in the text."""
    # An edit is applied where its text is found, so it has to be found exactly once.
    first, last = next(
        (start - before, end + more - before)
        for more in range(len(text) + 1)
        for before in range(min(more, start) + 1)
        if text.count(text[start - before : end + more - before]) == 1
    )
    new = text[first:start] + by + text[end:last]
    return {"kind": "replace", "find": text[first:last], "text": new}
